internal import AttestGate
internal import Commands
internal import GateRuntime
internal import Glibc
internal import Settings

/// Opens a gate's store for a command.
enum OpenStore {
  /// Opens the store, calls `body` with it, and closes it.
  ///
  /// - Parameter isNew: whether a SQLite file may be created. Without it, a mistyped path would produce an empty
  ///   store.
  static func with<Value>(
    _ place: GateSettings.Store, isNew: Bool = false, _ body: (any GateStore) async throws(Failure) -> Value
  ) async throws(Failure) -> Value {
    if case .sqlite(let path) = place, !isNew, !exists(place) {
      throw Failure(
        .noInput, "no store exists at \(path)",
        hint: "name the gate's configuration with -c FILE, or the store with --store URL")
    }
    let store = try place.makeStore(mostWaiting: 1024)
    do throws(StoreError) {
      try await store.open()
    } catch {
      await store.close()
      throw failure(error, of: store)
    }
    do throws(Failure) {
      let value = try await body(store)
      await store.close()
      return value
    } catch {
      await store.close()
      throw error
    }
  }

  /// Whether there may be a store: `false` only for a SQLite file that does not exist.
  static func exists(_ place: GateSettings.Store) -> Bool {
    guard case .sqlite(let path) = place else { return true }
    return access(path, F_OK) == 0 || errno != ENOENT && errno != ENOTDIR
  }

  static func failure(_ error: StoreError, of store: any GateStore) -> Failure {
    Failure(error, of: store.place)
  }
}
