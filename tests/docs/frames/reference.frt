frt 1

structure example version 1 {
  dim M, D
  in  x [rows M, D] : host
  out y [rows M, D] : host
  variant flavour { mild, strong }
  reference {
    HERE
  }
}
