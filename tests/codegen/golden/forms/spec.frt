frt 1

structure core version 1 {
  """Scores of queries and keys, and the values they pick."""
  dim B, H, S, T, D
  in  q     [B, H, S, D] : host
  in  k     [B, H, T, D] : host
  in  v     [B, H, T, D] : host
  in  bias? [B, 1, S, T] : host
  out y     [B, S, H, D] : host
  reference {
    point q_in = q
    let s = f32(q_in) @ transpose(f32(k), 2, 3)
    let s = s + f32(bias)  when present bias
    yield y = cast(transpose(softmax(s, over T) @ f32(v), 1, 2), q)
  }
}

structure affine version 1 {
  """A table row scales, another shifts."""
  dim M, D
  in  x [rows M, D] : host
  out y [rows M, D] : host
  slot w     [D, D]
  slot table [2, D]
  slot shift [D]
  reference {
    let h = x @ w
    yield y = cast(f32(h) * f32(table)[0] + f32(shift), x)
  }
}

structure held version 1 {
  """What moves more slowly than the loop around it."""
  dim M, N
  in  x [rows M, *] : host
  out y [rows M, N] : host
  part refresh : host fn (x) -> y
  reference {
    yield y = refresh(x)
  }
}

scheme off {
  at affine version 1 keep "a table is small"
  otherwise keep "nothing here has a form"
}

auto { else => off }

binding painter {
  """A host whose attention is looked up, with experts and a slow half."""
  host diffusers ">=0.30" class PainterModel

  dims {
    H = config.heads,
    D = model.blocks[0].attn.width / H,
    E = config.experts ?? 1
  }

  each i in 0..config.depth {
    seat core : core version 1 at blocks.{i}.attn when model.blocks[i].attn.bias == none {
      form route (dispatched_attention)
      dims { H = H, D = D }
      point q_in = arg q of dispatched_attention
      boundary at blocks.{i}.attn {
        q = arg q of dispatched_attention : tokens_first,
        k = arg k of dispatched_attention : tokens_first,
        v = output of to_v : flat_heads,
        bias = arg rotary_emb[1],
        y = output of dispatched_attention
      }
    }
    seat own : core version 1 at blocks.{i}.mixer {
      form route (mixed, via = global, args = (query, key, value))
      dims { H = H, D = D }
      point q_in = arg query of mixed
      boundary at blocks.{i}.mixer {
        q = arg query of mixed,
        k = arg key of mixed,
        v = arg value of mixed,
        y = output[0] of mixed
      }
    }
    seat slow : held version 1 at blocks.{i}.context {
      form update (cadence = observation)
      dims { N = H * D }
      boundary at blocks.{i}.context { x = input, y = output }
    }
    each e in 0..E where config.kinds[i] == "experts" {
      seat expert : affine version 1 at blocks.{i}.experts.{e} {
        form block
        dims { D = H * D }
        slot w     = expert(stack, e) : out_in
        slot table = squeeze(scale_shift_table) : in_out
        slot shift = part(ada.bias, 1, 3)
        boundary at blocks.{i}.experts.{e} { x = input, y = output }
      }
    }
    seat patch : affine version 1 at blocks.{i}.patch {
      dims { D = H * D }
      slot w     = flat(conv.weight) : out_in
      slot table = zeros
      slot shift = chunks(ada.bias, scale, shift)
      boundary at blocks.{i}.patch { x = input, y = output }
    }
    chain patch.y -> slow.x wire bf16 require (same_storage, exclusive_consumer)
  }
  group experts over (expert, patch) writer first_called require (same_stream, same_rows)
}
