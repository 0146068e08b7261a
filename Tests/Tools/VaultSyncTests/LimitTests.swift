import Foundation
import Locking
import TestSupport
import Testing
import AuthenticatorVault

@Suite struct LimitTests {
  /// The values as such, and a device of the simulated cloud.
  private static let stores: [@Sendable () -> any UbiquitousStore] = [
    { SimulatedCloud(devices: 2, random: SeededGenerator(seed: 1)).store(device: 0) },
    { ValuesStore() },
  ]

  @Test("D-040 D-041 a store holds 1,048,576 bytes with its names, and one more is refused", arguments: stores.indices)
  func total(_ index: Int) throws {
    let store = Self.stores[index]()
    try store.set(Data(repeating: 1, count: 500_000), forKey: "a")
    try store.set(Data(repeating: 2, count: 548_574), forKey: "b")
    #expect(throws: UbiquitousStoreError.size(bytes: 1_048_577)) {
      try store.set(Data(repeating: 3, count: 548_575), forKey: "b")
    }
    #expect(try store.data(forKey: "b") == Data(repeating: 2, count: 548_574))
    #expect(throws: UbiquitousStoreError.size(bytes: 1_048_577)) { try store.set(Data(), forKey: "c") }
    #expect(try store.data(forKey: "c") == nil)
    try store.removeValue(forKey: "a")
    try store.set(Data(), forKey: "c")
  }

  @Test("D-042 one value may have all bytes of the store, and no more", arguments: stores.indices)
  func single(_ index: Int) throws {
    let store = Self.stores[index]()
    try store.set(Data(count: 1_048_571), forKey: "vault")
    #expect(throws: UbiquitousStoreError.size(bytes: 1_048_577)) {
      try store.set(Data(repeating: 7, count: 1_048_572), forKey: "vault")
    }
    #expect(try store.data(forKey: "vault") == Data(count: 1_048_571))
  }

  @Test("D-043 a store has 1,024 values, whose names have at most 64 bytes", arguments: stores.indices)
  func count(_ index: Int) throws {
    let store = Self.stores[index]()
    for number in 0..<1024 { try store.set(Data([1]), forKey: "\(number)") }
    #expect(throws: UbiquitousStoreError.count) { try store.set(Data([1]), forKey: "1024") }
    try store.set(Data([2]), forKey: "1023")
    #expect(try store.data(forKey: "1023") == Data([2]) && store.data(forKey: "1024") == nil)
    try store.removeValue(forKey: "0")
    try store.set(Data([1]), forKey: String(repeating: "x", count: 64))
    #expect(throws: UbiquitousStoreError.name(bytes: 65)) {
      try store.set(Data([1]), forKey: String(repeating: "x", count: 65))
    }
    #expect(throws: UbiquitousStoreError.name(bytes: 66)) {
      try store.set(Data([1]), forKey: String(repeating: "é", count: 33))
    }
    #expect(throws: UbiquitousStoreError.name(bytes: 0)) { try store.set(Data([1]), forKey: "") }
  }
}

/// The limits alone.
private final class ValuesStore: UbiquitousStore {
  private let values = LockedValue(UbiquitousValues())

  func data(forKey name: String) throws(UbiquitousStoreError) -> Data? { values.withLock { $0[name] } }

  func set(_ value: Data, forKey name: String) throws(UbiquitousStoreError) {
    let error = values.withLock { values -> UbiquitousStoreError? in
      do throws(UbiquitousStoreError) {
        try values.set(value, forKey: name)
        return nil
      } catch {
        return error
      }
    }
    if let error { throw error }
  }

  func removeValue(forKey name: String) throws(UbiquitousStoreError) {
    values.withLock { $0.removeValue(forKey: name) }
  }
  func synchronize() -> Bool { true }
  func externalChanges() -> AsyncStream<Void> { AsyncStream { $0.finish() } }
}
