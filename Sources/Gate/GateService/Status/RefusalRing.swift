internal import Transport

/// The last refusals in their order, each with the block of addresses of its client.
///
/// Every record has a place in an array, and knows its neighbours by their places: those before and after it, and the
/// next one of the same block. So a record replaces another one in constant time, also one in the middle.
struct RefusalRing {
  /// A record whose number is not known yet.
  final class Entry: Sendable {
    let record: RefusalRecord
    init(_ record: RefusalRecord) { self.record = record }
  }

  private struct Place {
    var number: UInt64
    var entry: Entry
    var block: AddressBlock
    var older: Int?
    var newer: Int?
    /// The next newer one of the same block.
    var newerOfBlock: Int?
  }

  /// The records of one block.
  private struct Chain {
    var count: Int
    var oldest: Int
    var newest: Int
  }

  /// The maximum number of records, and the number of records of one block from which on it replaces its own ones.
  private let (capacity, share): (Int, Int)
  private var places: [Place] = []
  private var chains: [AddressBlock: Chain] = [:]
  private var oldest: Int?
  private var newest: Int?

  init(capacity: Int, share: Int) { (self.capacity, self.share) = (capacity, share) }

  var isEmpty: Bool { places.isEmpty }

  /// The records, the newest first.
  var newestFirst: [(number: UInt64, entry: Entry)] {
    var found: [(number: UInt64, entry: Entry)] = []
    found.reserveCapacity(places.count)
    var next = newest
    while let place = next {
      found.append((places[place].number, places[place].entry))
      next = places[place].older
    }
    return found
  }

  /// Adds a record. If there are `capacity`, it replaces the oldest one of a block that has its share, and otherwise the
  /// oldest one of all.
  ///
  /// - Returns: The replaced record.
  mutating func append(_ entry: Entry, numbered number: UInt64, of block: AddressBlock) -> Entry? {
    guard places.count >= capacity, let oldest else {
      places.append(Place(number: number, entry: entry, block: block))
      link(places.count - 1)
      return nil
    }
    let chain = chains[block]
    let place = chain.map { $0.count >= share ? $0.oldest : oldest } ?? oldest
    let replaced = places[place].entry
    unlink(place)
    places[place] = Place(number: number, entry: entry, block: block)
    link(place)
    return replaced
  }

  /// Makes the record at `place` the newest one, of all and of its block.
  private mutating func link(_ place: Int) {
    let block = places[place].block
    places[place].older = newest
    if let newest { places[newest].newer = place } else { oldest = place }
    newest = place
    guard let chain = chains[block] else {
      chains[block] = Chain(count: 1, oldest: place, newest: place)
      return
    }
    places[chain.newest].newerOfBlock = place
    chains[block] = Chain(count: chain.count + 1, oldest: chain.oldest, newest: place)
  }

  /// Removes the record at `place`, which is the oldest one of its block, from the order.
  private mutating func unlink(_ place: Int) {
    let removed = places[place]
    if let older = removed.older { places[older].newer = removed.newer } else { oldest = removed.newer }
    if let newer = removed.newer { places[newer].older = removed.older } else { newest = removed.older }
    guard let chain = chains[removed.block], let next = removed.newerOfBlock else {
      chains[removed.block] = nil
      return
    }
    chains[removed.block] = Chain(count: chain.count - 1, oldest: next, newest: chain.newest)
  }
}
