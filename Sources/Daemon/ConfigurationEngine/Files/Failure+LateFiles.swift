public import Commands

extension Failure {
  /// The files of the configuration were not read within `limit`.
  public static func lateFiles(within limit: Duration) -> Failure {
    Failure(
      .unavailable, "the configuration's files cannot be read: no answer within \(limit)",
      hint: "check the file systems that hold them, such as network mounts")
  }
}
