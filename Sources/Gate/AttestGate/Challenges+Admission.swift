internal import ByteCoding

extension Challenges {
  /// Requires that `nonce` was issued here and is valid at `now`.
  ///
  /// - Throws: `.nonceRefused`, or `.storeUnavailable` if the challenge keys cannot be read.
  func require(_ nonce: Nonce, at now: Timestamp) async throws(Denial) {
    try await Denial.onStoreError { () throws(StoreError) in try await prepare() }
    do throws(NonceRejection) {
      try check(nonce, at: now)
    } catch .unknownKey {
      // Another node may have just made the key of this nonce.
      try await Denial.onStoreError { () throws(StoreError) in try await refreshOnce(at: now) }
      do throws(NonceRejection) { try check(nonce, at: now) } catch { throw .nonceRefused(error) }
    } catch {
      throw .nonceRefused(error)
    }
  }
}
