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
