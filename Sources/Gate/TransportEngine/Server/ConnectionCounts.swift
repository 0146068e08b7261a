internal import Locking
internal import Transport

/// How many connections each address has open, over all loops. Only those addresses that have one take room.
final class ConnectionCounts: Sendable {
  private let counts = Guarded<[AddressBlock: Int]>([:])

  /// Counts a connection until the value that is returned is gone; `nil` if there are `limit` already.
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

/// A connection's entry in `ConnectionCounts`, for as long as it is held.
final class ConnectionPlace: Sendable {
  private let block: AddressBlock
  private let counts: ConnectionCounts

  fileprivate init(_ block: AddressBlock, in counts: ConnectionCounts) {
    self.block = block
    self.counts = counts
  }

  deinit { counts.leave(block) }
}
