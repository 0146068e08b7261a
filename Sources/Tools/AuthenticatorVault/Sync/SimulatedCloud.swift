internal import Foundation
internal import Locking

/// A store and a keychain that several simulated devices share, with delays, on a clock that stands still until it is
/// moved.
///
/// As with Apple's, the last writer of a value wins on all devices; what a device wrote offline is sent when it is
/// online again. A value arrives after 5 to 10 seconds, a key after 5 to 30, each drawn from `random`.
public final class SimulatedCloud: Sendable {
  private struct Version {
    let value: Data
    /// The order of writing, which all devices see in the same way.
    let number: Int
  }

  private struct Arrival {
    let at: Int64
    let device: Int
    let item: Item
    let version: Version
  }

  /// What is shared: a value of the store, or the key.
  private enum Item: Hashable {
    case value(String)
    case key
  }

  private struct Device {
    var isOnline = true
    var items: [Item: Version] = [:]
    /// What was written offline.
    var unsent: [Item: Version] = [:]
    var listeners: [AsyncStream<Void>.Continuation] = []
    /// What the keychain answers instead of the key.
    var keychainFault: VaultKeychainError?
  }

  private struct State {
    var now: Int64
    var devices: [Device]
    var underway: [Arrival] = []
    var latest: [Item: Version] = [:]
    var writes = 0
    var random: any RandomNumberGenerator & Sendable
  }

  private let state: LockedValue<State>

  /// Creates a cloud with `count` devices, all online.
  public init(devices count: Int, at time: Int64 = 0, random: some RandomNumberGenerator & Sendable) {
    state = LockedValue(State(now: time, devices: Array(repeating: Device(), count: count), random: random))
  }

  /// The time, in milliseconds.
  public var now: Int64 { state.withLock { $0.now } }

  /// Moves the clock by `milliseconds` and delivers what arrives until then.
  public func advance(by milliseconds: Int64) {
    let listeners = state.withLock { state -> [AsyncStream<Void>.Continuation] in
      state.now += milliseconds
      var changed: Set<Int> = []
      let due = state.underway.filter { $0.at <= state.now }.sorted { $0.at < $1.at }
      state.underway.removeAll { $0.at <= state.now }
      for arrival in due {
        guard state.devices[arrival.device].isOnline else {
          state.underway.append(
            Arrival(at: .max, device: arrival.device, item: arrival.item, version: arrival.version))
          continue
        }
        if Self.deliver(arrival, to: &state) { changed.insert(arrival.device) }
      }
      return changed.flatMap { state.devices[$0].listeners }
    }
    for listener in listeners { listener.yield() }
  }

  /// Connects or disconnects a device. What waits for it arrives after the next advance of the clock.
  public func setOnline(_ isOnline: Bool, device: Int) {
    state.withLock { state in
      state.devices[device].isOnline = isOnline
      guard isOnline else { return }
      state.underway = state.underway.map { arrival in
        guard arrival.device == device, arrival.at == .max else { return arrival }
        return Arrival(at: state.now, device: device, item: arrival.item, version: arrival.version)
      }
      let unsent = state.devices[device].unsent
      state.devices[device].unsent = [:]
      for (item, version) in unsent { Self.publish(item, version.value, from: device, in: &state) }
    }
  }

  /// Lets the keychain of a device answer with `fault`, or with the key again.
  public func setKeychainFault(_ fault: VaultKeychainError?, device: Int) {
    state.withLock { $0.devices[device].keychainFault = fault }
  }

  /// The store as `device` sees it.
  public func store(device: Int) -> any UbiquitousStore { SimulatedStore(cloud: self, device: device) }

  /// The keychain as `device` sees it.
  public func keychain(device: Int) -> any VaultKeychain { SimulatedKeychain(cloud: self, device: device) }

  /// Whether nothing is underway.
  public var isQuiet: Bool {
    state.withLock { state in state.underway.isEmpty && state.devices.allSatisfy { $0.unsent.isEmpty } }
  }

  private static func deliver(_ arrival: Arrival, to state: inout State) -> Bool {
    let present = state.devices[arrival.device].items[arrival.item]
    guard present.map({ $0.number < arrival.version.number }) ?? true else { return false }
    state.devices[arrival.device].items[arrival.item] = arrival.version
    return true
  }

  private static func publish(_ item: Item, _ value: Data, from device: Int, in state: inout State) {
    state.writes += 1
    let version = Version(value: value, number: state.writes)
    state.devices[device].items[item] = version
    guard state.devices[device].isOnline else {
      state.devices[device].unsent[item] = version
      return
    }
    state.latest[item] = version
    for other in state.devices.indices where other != device {
      let delay = Int64.random(in: item == .key ? 5000...30_000 : 5000...10_000, using: &state.random)
      let at = state.devices[other].isOnline ? state.now + delay : .max
      state.underway.append(Arrival(at: at, device: other, item: item, version: version))
    }
  }

  // MARK: What the devices see

  private struct SimulatedStore: UbiquitousStore {
    let cloud: SimulatedCloud
    let device: Int

    func data(forKey name: String) throws(UbiquitousStoreError) -> Data? {
      cloud.state.withLock { $0.devices[device].items[.value(name)]?.value }
    }

    func set(_ value: Data, forKey name: String) throws(UbiquitousStoreError) {
      let refused = cloud.state.withLock { state -> UbiquitousStoreError? in
        var values = UbiquitousValues()
        do throws(UbiquitousStoreError) {
          for case (.value(let name), let version) in state.devices[device].items where !version.value.isEmpty {
            try values.set(version.value, forKey: name)
          }
          try values.set(value, forKey: name)
        } catch {
          return error
        }
        SimulatedCloud.publish(.value(name), value, from: device, in: &state)
        return nil
      }
      if let refused { throw refused }
    }

    func removeValue(forKey name: String) throws(UbiquitousStoreError) {
      cloud.state.withLock { $0.devices[device].items[.value(name)] = nil }
    }

    func synchronize() -> Bool { true }

    func externalChanges() -> AsyncStream<Void> {
      let (stream, continuation) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
      cloud.state.withLock { $0.devices[device].listeners.append(continuation) }
      return stream
    }
  }

  private struct SimulatedKeychain: VaultKeychain {
    let cloud: SimulatedCloud
    let device: Int

    func key() throws(VaultKeychainError) -> VaultKey {
      let (found, fault) = cloud.state.withLock { state in
        (state.devices[device].items[.key]?.value, state.devices[device].keychainFault)
      }
      if let fault { throw fault }
      guard let key = found.flatMap({ VaultKey(bytes: $0) }) else { throw .itemNotFound }
      return key
    }

    func add(_ key: VaultKey) throws(VaultKeychainError) {
      let isDuplicate = cloud.state.withLock { state in
        guard state.devices[device].items[.key] == nil else { return true }
        SimulatedCloud.publish(.key, Data(key.bytes), from: device, in: &state)
        return false
      }
      if isDuplicate { throw .duplicateItem }
    }
  }
}
