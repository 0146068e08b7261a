internal import CLinux

/// Random numbers from the kernel, fetched in batches: a system call for each number would cost too much.
///
/// Each number is returned once and erased.
struct RandomPool: RandomNumberGenerator {
  private static let capacity = 64
  private let numbers: UnsafeMutablePointer<UInt64> = .allocate(capacity: capacity)
  private var left = 0

  func deallocate() { numbers.deallocate() }

  mutating func next() -> UInt64 {
    if left == 0 { refill() }
    left -= 1
    defer { numbers[left] = 0 }
    return numbers[left]
  }

  private mutating func refill() {
    var generator = SystemRandomNumberGenerator()
    let size = Self.capacity * MemoryLayout<UInt64>.size
    // getrandom(2) returns up to 256 bytes completely or fails. The slow generator replaces a failed part.
    for start in stride(from: 0, to: size, by: 256) {
      let part = UnsafeMutableRawPointer(numbers) + start
      if getrandom(part, 256, 0) == 256 { continue }
      for index in 0..<(256 / 8) { part.storeBytes(of: generator.next(), toByteOffset: index * 8, as: UInt64.self) }
    }
    left = Self.capacity
  }
}
