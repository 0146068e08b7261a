internal import ByteCoding
public import Cryptography

/// The keys to which the chains of real devices lead. Published: https://android.googleapis.com/attestation/root
///
/// Keys, not certificates: the RSA key has had four certificates, of which the first expired on 2026-05-24, and devices
/// that were made with it live on.
public enum GoogleRoots {
  /// RSA with 4096 bits, since 2016; the subject is serialNumber=f92009e853b6b045.
  public static let rsa = constant(rsaKey)
  /// P-384, since 2025: "Key Attestation CA1", which remotely provisioned chains have used since 2026.
  public static let keyAttestationCA1 = constant(ca1Key)

  /// Both keys.
  public static let all = [rsa, keyAttestationCA1]

  private static func constant(_ base64: String) -> IssuerKey {
    do throws(CryptographyError) {
      return try IssuerKey(spki: Base64.decode(base64.filter { !$0.isNewline }) ?? [])
    } catch {
      // The texts below are constants, and a test reads them and compares them with Google's certificates.
      fatalError("a pinned root is damaged: \(error)")
    }
  }

  private static let rsaKey = """
    MIICIjANBgkqhkiG9w0BAQEFAAOCAg8AMIICCgKCAgEAr7bHgiuxpwHsK7Qui8xUFmOr75gvMsd/dTEDDJdSSxtf6An7xyqpRR90
    PL2abxM1dEqlXnf2tqw1Ne4Xwl5jlRfdnJLmN0pTy/4lj4/7tv0Sk3iiKkypnEUtR6WfMgH0QZfKHM1+di+y9TFRtv6y//0rb+T+
    W8a9nsNL/ggjnar86461qO0rOs2cXjp3kOG1FEJ5MVmFmBGtnrKpa73XpXyTqRxB/M0n1n/W9nGqC4FSYa04T6N5RIZGBN2z2MT5
    IKGbFlbC8UrW0DxW7AYImQQcHtGl/m00QLVWutHQoVJYnFPlXTcHYvASLu+RhhsbDmxMgJJ0mcDpvsC4PjvB+TxywElgS70vE0Xm
    LD+OJtvsBslHZvPBKCOdT0MS+tgSOIfga+z1Z1g7+DVagf7quvmag8jfPioyKvxnK/EgsTUVi2ghzq8wm27ud/mIM7AY2qEORR8G
    o3TVB4HzWQgpZrt3i5MIlCaY504LzSRiigHCzAPlHws+W0rB5N+er5/2pJKnfBSDiCiFAVtCLOZ7gLiMm0jhO2B6tUXHI/+MRPjy
    02i59lINMRRev56GKtcd9qO/0kUJWdZTdA2XoS82ixPvZtXQpUpuL12ab+9EaDK8Z4RHJYYfCT3Q5vNAXaiWQ+8PTWm2QgBR/bkw
    SWc+NpUFgNPN9PvQi8WEg5UmAGMCAwEAAQ==
    """

  private static let ca1Key = """
    MHYwEAYHKoZIzj0CAQYFK4EEACIDYgAEI9ojcU7fPlsFCjxy6IRqzgeOoK0b+YsV9FPQywiyw8EQRTkJ9u3qwfnI4DGoSLlBqClT
    XJfgfCcZvs60FikNMHnu4fkRzObfgDkU2KNXezT9/RQ+XvNslxPHrHCowhGr
    """
}
