internal import ByteCoding

extension Denial {
  /// What `call` to a store comes to; its fault becomes a denial.
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
  /// Throws unless `nonce` is ours and good at `now`.
  func require(_ nonce: Nonce, at now: Timestamp) async throws(Denial) {
    try await Denial.onStoreError { () throws(StoreError) in try await prepare() }
    do throws(NonceFault) {
      try check(nonce, at: now)
    } catch .unknownKey {
      // Another node may have made it with a key that it has just made.
      try await Denial.onStoreError { () throws(StoreError) in try await refreshOnce(at: now) }
      do throws(NonceFault) { try check(nonce, at: now) } catch { throw .nonceRefused(error) }
    } catch {
      throw .nonceRefused(error)
    }
  }
}
