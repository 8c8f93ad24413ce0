"""A language model that proposes: how it is asked (`calling`), how a reply is read (`reading`), and the `engine`."""
