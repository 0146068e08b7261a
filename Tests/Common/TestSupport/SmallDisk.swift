import Foundation
import Glibc

/// A small disk in memory.
public struct SmallDisk: Sendable {
  struct Failure: Error, CustomStringConvertible { let description: String }

  public let path: String

  /// Whether this user may mount disks; otherwise these tests are skipped.
  public static let isPermitted: Bool = {
    let path = NSTemporaryDirectory() + "sallyport-mount-\(getpid())"
    guard mkdir(path, 0o700) == 0 else { return false }
    defer { rmdir(path) }
    return run("mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", path) && run("umount", path)
  }()

  /// Calls `body` with a new disk of `kibibytes` KiB, and removes the disk afterwards.
  public static func with<R>(kibibytes: Int, _ body: (SmallDisk) async throws -> R) async throws -> R {
    try await Places.withTemporaryFolder { folder in
      let disk = SmallDisk(path: folder + "/disk")
      guard mkdir(disk.path, 0o700) == 0,
        run("mount", "-t", "tmpfs", "-o", "size=\(kibibytes)k,mode=0700", "tmpfs", disk.path)
      else { throw Failure(description: "cannot mount a disk") }
      defer { _ = run("umount", "--lazy", disk.path) }
      return try await body(disk)
    }
  }

  private static func run(_ tool: String, _ arguments: String...) -> Bool {
    guard let path = try? Places.tool(tool) else { return false }
    return (try? ChildProcess.run(path, arguments, writing: "/dev/null", "/dev/null")) == .code(0)
  }

  private var filler: String { path + "/filler" }

  /// Fills the disk.
  public func fill() {
    let descriptor = open(filler, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
    defer { close(descriptor) }
    for size in [65536, 4096] {
      let block = [UInt8](repeating: 0, count: size)
      while write(descriptor, block, size) == size {}
    }
  }

  /// Removes what `fill` wrote.
  public func makeRoom() { unlink(filler) }

  /// Makes the disk read-only, or writable again.
  public func remount(readOnly: Bool) throws {
    guard Self.run("mount", "-o", "remount,\(readOnly ? "ro" : "rw")", path) else {
      throw Failure(description: "remount failed")
    }
  }
}
