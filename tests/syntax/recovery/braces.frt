frt 1

structure a version 1 {
  dim M, D
  in x [rows M, D] : host

  reference {
    let h = x
    yield y = h

  seam s { from h to y }
}

structure b version 1
  dim M

  reference {
    each i {
      let h = x
      }
    }
  }

  gate boundary { cosine >= 0.999 }
}

binding c {
  each i in 0..L {
    seat s : b version 1 at layers.{i} {
      dims { M = 1 }
    seat t : b version 1 at layers.{i}.mlp {
      dims { M = 1 }
    }
  }
}
