internal import Locking
internal import Transport

/// The number of open connections per address, over all loops. Only addresses with open connections use memory.
final class ConnectionCounts: Sendable {
  private let counts = LockedValue<[AddressBlock: Int]>([:])

  /// Counts a connection until the returned value is released; `nil` if the address already has `limit` connections.
  func enter(_ block: AddressBlock, atMost limit: Int) -> ConnectionPlace? {
    let hasRoom = counts.withLock { counts in
      let count = counts[block, default: 0]
      guard count < limit else { return false }
      counts[block] = count + 1
      return true
    }
    return hasRoom ? ConnectionPlace(block, in: self) : nil
  }

  fileprivate func leave(_ block: AddressBlock) {
    counts.withLock { counts in
      guard let count = counts[block], count > 1 else {
        counts[block] = nil
        return
      }
      counts[block] = count - 1
    }
  }

  /// For tests.
  var countOfAddresses: Int { counts.withLock(\.count) }
}

/// A connection's entry in `ConnectionCounts`. Releasing it removes the entry.
final class ConnectionPlace: Sendable {
  private let block: AddressBlock
  private let counts: ConnectionCounts

  fileprivate init(_ block: AddressBlock, in counts: ConnectionCounts) {
    self.block = block
    self.counts = counts
  }

  deinit { counts.leave(block) }
}
