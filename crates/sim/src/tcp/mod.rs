//! TCP as background traffic, in the flavours that networks have had.
