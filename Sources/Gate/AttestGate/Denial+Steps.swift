internal import ByteCoding

extension Denial {
  /// Runs `call` on a store and turns a `StoreError` into `.storeUnavailable`.
  static func onStoreError<Value: Sendable>(
    _ call: () async throws(StoreError) -> Value
  ) async throws(Denial) -> Value {
    do throws(StoreError) {
      return try await call()
    } catch {
      throw .storeUnavailable(error)
    }
  }
}

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
