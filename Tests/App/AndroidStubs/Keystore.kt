package android.security.keystore

import java.security.spec.AlgorithmParameterSpec

object KeyProperties {
  const val PURPOSE_SIGN = 4
  const val DIGEST_SHA256 = "SHA-256"
  const val KEY_ALGORITHM_EC = "EC"
}

class KeyGenParameterSpec private constructor() : AlgorithmParameterSpec {
  @Suppress("UNUSED_PARAMETER")
  class Builder(keystoreAlias: String, purposes: Int) {
    fun setAlgorithmParameterSpec(spec: AlgorithmParameterSpec): Builder = this
    fun setDigests(vararg digests: String): Builder = this
    fun setAttestationChallenge(attestationChallenge: ByteArray?): Builder = this
    fun setIsStrongBoxBacked(isStrongBoxBacked: Boolean): Builder = this
    fun build(): KeyGenParameterSpec = TODO("a declaration")
  }
}
