/// Identifies one occupant of a loop. It is never reused: after the occupant has left, it identifies nothing.
struct SlotToken: Sendable, Hashable {
  let slot: UInt32
  let generation: UInt32
}

/// The table that epoll events and timers refer to. Slots are reused; each use has a new generation.
struct SlotTable {
  enum Kind: UInt8 { case free, session, channel }

  private struct Slot {
    var generation: UInt32 = 0
    var kind = Kind.free
    var occupant: UnsafeMutableRawPointer?
  }

  private var slots: UnsafeMutablePointer<Slot> = .allocate(capacity: 64)
  private var capacity = 64
  private var used = 0
  private var freed: [UInt32] = []

  /// The number of slots that were ever in use: an upper bound for iterations.
  var end: UInt32 { UInt32(used) }

  mutating func insert(_ occupant: UnsafeMutableRawPointer, _ kind: Kind) -> SlotToken {
    let index: Int
    if let last = freed.popLast() {
      index = Int(last)
    } else {
      if used == capacity { grow() }
      slots.advanced(by: used).initialize(to: Slot())
      index = used
      used += 1
    }
    slots[index].kind = kind
    slots[index].occupant = occupant
    return SlotToken(slot: UInt32(index), generation: slots[index].generation)
  }

  mutating func remove(_ slot: UInt32) {
    slots[Int(slot)].generation &+= 1
    slots[Int(slot)].kind = .free
    slots[Int(slot)].occupant = nil
    freed.append(slot)
  }

  /// Returns the session with `token`; `nil` if it is gone or the token belongs to a channel.
  func session(_ token: SlotToken) -> UnsafeMutablePointer<RelaySession>? {
    guard isCurrent(token), slots[Int(token.slot)].kind == .session else { return nil }
    return slots[Int(token.slot)].occupant?.assumingMemoryBound(to: RelaySession.self)
  }

  func channel(_ token: SlotToken) -> LoopChannel? {
    guard isCurrent(token), slots[Int(token.slot)].kind == .channel, let occupant = slots[Int(token.slot)].occupant
    else { return nil }
    return Unmanaged<LoopChannel>.fromOpaque(occupant).takeUnretainedValue()
  }

  /// Returns the token of the current occupant of `slot`; `nil` if the slot is free.
  func token(in slot: UInt32) -> SlotToken? {
    guard slot < used, slots[Int(slot)].kind != .free else { return nil }
    return SlotToken(slot: slot, generation: slots[Int(slot)].generation)
  }

  private func isCurrent(_ token: SlotToken) -> Bool {
    token.slot < used && slots[Int(token.slot)].generation == token.generation
  }

  private mutating func grow() {
    let fresh = UnsafeMutablePointer<Slot>.allocate(capacity: capacity * 2)
    fresh.moveInitialize(from: slots, count: used)
    slots.deallocate()
    slots = fresh
    capacity *= 2
  }

  func deallocate() { slots.deallocate() }
}
