frt 1

structure t version 1 {
  dim M, D
  in  x [rows M, D] : host
  out y [rows M, D] : host
  slot w [D]
  reference {
    point x_in = x * w
    yield y = x_in
  }
}
pipeline tick version 1 {
  family cond_iter_pipeline
  window image  : swap from caller cadence observation
  window action : swap readback cadence tick
  buffer seen   : static cadence observation
  stage look {
    cadence observation
    read image
    write seen
    capture host_dependent
  }
  stage act {
    cadence tick
    read seen
    write action
    capture required
  }
  embeds (t version 1)
  gate parity on action { cosine >= 0.999, against (host_eager_same_seed) }
}
binding robot {
  host mine ">=1" class Robot
  seat norm : t version 1 at norm {
    dims { D = config.hidden_size }
    slot w = weight
    point x_in = input
    boundary at norm { x = input, y = output }
  }
  pipeline tick version 1 {
    stage look at vision { capture eager window image = input buffer seen = output }
    stage act at head { capture graph buffer seen = input window action = output }
    coverage complete_hot_path {
      hot_path (vision, head)
      segment vision : host_stage in look { seam "the vision tower" }
      segment head : host_stage in act { seam "the action head" }
    }
  }
}
