internal import AttestGate
internal import GateRuntime
internal import Glibc
internal import Settings

/// A gate's store, opened by a command.
enum OpenStore {
  /// Calls `body` with the store, and closes it.
  ///
  /// - Parameter isNew: whether an SQLite file may be made. Else a path that was mistyped would be an empty store.
  static func with<Value>(
    _ place: GateSettings.Store, isNew: Bool = false, _ body: (any GateStore) async throws(SallyportError) -> Value
  ) async throws(SallyportError) -> Value {
    if case .sqlite(let path) = place, !isNew, access(path, F_OK) != 0, errno == ENOENT || errno == ENOTDIR {
      throw SallyportError(
        .noInput, error: "there is no store at \(path)",
        hint: "name the gate's configuration with -c FILE, or the store with --store URL")
    }
    let store = try place.makeStore(mostWaiting: 1024)
    do throws(StoreError) {
      try await store.open()
    } catch {
      await store.close()
      throw failure(error, of: store)
    }
    do throws(SallyportError) {
      let value = try await body(store)
      await store.close()
      return value
    } catch {
      await store.close()
      throw error
    }
  }

  static func failure(_ error: StoreError, of store: any GateStore) -> SallyportError {
    SallyportError(error, of: store.place)
  }
}
