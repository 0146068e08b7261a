package okio

open class ByteString
