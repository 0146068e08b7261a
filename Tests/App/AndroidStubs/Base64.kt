package android.util

object Base64 {
  const val NO_WRAP = 2
  @JvmStatic fun encodeToString(input: ByteArray, flags: Int): String = TODO("a declaration: $input $flags")
}
