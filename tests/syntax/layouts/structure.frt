# head
frt   1 # ed
# sect

# doc
structure   s version 1   { # open
   # before doc
   """  Hello "q"
     more
   """ # afterdoc
 dim M , D # dims


 # a
 in x[rows M,D]:host when # mid
   a is b
 in  state? [B, H]: f32 =zeros
 slot w [i] [K, N[i]] # w
 slot bbbb[i]? [N [i]] when x is not y
 variant activation { gelu, # first
   silu # second
   # dangling
 } default gelu
 variant q {a,b,}
 reference {
   scan t in S over k[:,t], v[ : , t ] carry s=state, m = -1 { let a = (x) * - 2 ** -y next s = f( a , over D , per block 16,) emit out = a when not (b is c) }
   yield y = x+1 # end
   # trailing of block
 } # after
 seam mlp { from x to o gate cosine >= 0.9 gate max_abs <= 1, p99 }
 qualify for q { a*b>=3, c//2 == 1 }
 part attn: host fn(q,k)->o
 # last
}
auto{ capability>=8.9=>fp8_static,else=>none } # bye
# eof
