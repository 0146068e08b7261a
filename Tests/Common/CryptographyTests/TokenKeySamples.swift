import Testing

/// Public keys of a JWKS and signatures of `message`, made by Node.js 20 (`crypto.sign`).
enum TokenKeySamples {
  static let message = "eyJhbGciOiJ4In0.eyJzdWIiOiIxIn0"

  /// The modulus of the RSA key of all RSA signatures; its exponent is 65537.
  static let modulus = """
    28b8qGPJhJ0EAdmvptQZZkyOQsvo1XTXruWgTvX1ilLwsIEN3Y5ib0JgrjOnSHM1vJixmC0idzAP-3_KrpSvBo_lLhVKR2usPVNp\
    KZ3VeEHfMuOu338rvUfY1-pWqNgbTOiQtj5VQWASEbFA25CTJ_CfXzbJztA8syOo_82eKDLwjXNEByTymDPUonPyM74LvaG6VOng\
    1_SqVR4YxajpJ44maO7JoXL2_72Fe2fP6WtdfkLwTMCwrOxmJRug3ut48YS1AWHFQaVvtgrCiY_6xQdBEbPDwpUNmFCbwixUBwkZ\
    vjWU97Awa8iBSMwHD4WcyqJBAK5Zq8of-qQmxJsSPQ
    """

  struct Sample: Sendable, CustomTestStringConvertible {
    let algorithm: String
    var x = ""
    var y = ""
    let signature: String

    var testDescription: String { algorithm }
  }

  static let all = [
    Sample(
      algorithm: "RS256",
      signature: """
        jDeTIskpBzlX_kJYEdQ5vYM3Zx-mJU8yc8sM0pDHSCfHL1c_TLUYAaY_-G-x32kiiS62xuur6oHI2-4rlABOYUr3cCIaRO92L9Dm\
        BUvIgCZ8tIy9HJVoGI3M3Ms9kn13QRcYfM-avayDWUl-hGWKGWIVtX8xLa7Dvb7mWuNHTRJvnuWdvfikvhZUzzReGNdnz1DCtJ3Q\
        E8QIda_ckYywp9jFfrwqnFcPi0QxEQTKDl-cHZx4ua0luk_vrhOhqoT0Y6xiRtnKHN677Skfb5RdpgHXsi9_wG8GXxPm3fWTZYe8\
        jEl_-_76mIY_3PRIlAVCMVz5CeM7CMbCVGpm2rE1fg
        """),
    Sample(
      algorithm: "PS256",
      signature: """
        Tzh2uYASfcP_lfjIZHmvVlRkFTkfL1JSh28rZ9Q9w7BsNAgS69A0U0GnZ-uGfQs0W_p7amtVIfK6mEn2skWRyAR0i10_Fu3eMwI6\
        dLTgIH5vFm3dlsF0JmAK7Mgz0BleXFv9La6F3qGCwrtPmt766huoJPZY4Dx78LREtE4TTAapthO2rI_xnC1iM8oaGejrkuCikF1c\
        8BeqQf9_xuPeg660KDmBmXunmniQOCAA3qUgFgf4ICi7dOCfv2kNOyt_jxg796oTu9qQxAxsZKM3ner8_gSi5vUrYpwNZPJH51_N\
        OFegMWDTq60y3JZCpP20zPPTixlRpAWYXj6sL9kFwQ
        """),
    Sample(
      algorithm: "RS384",
      signature: """
        PSsbAtx2r7ScxTbHSgCRbqCVTUMGnTy-ds_D5HgU64ilgjiAHTO3ia9BxWXRZgWi5NOd01WTvS_OqPMCdl5bFZHJ7anxeH8Q4zks\
        uxk7CQtulryTUfaltLhA_lzJ4GxWQfvnmcMnf8oscUBkf-37YiNzZWK3BW4X3u7A3dcmM7Cyr0NEEHCyayGaANJPcoYsem95s3T8\
        XOkyKkSXNrdI8DtVwbanLO9-wv6ueho9AGDzEbd4ob_UY5UsJgAXzL9x2SuPatu194YN2uc5MU4G8bdqLWHMp7T7hPik8fHeDlEv\
        WvYljzk6TLaWHtbF0AY2kR0Vrm8PwqK8BB56YsdUeg
        """),
    Sample(
      algorithm: "PS384",
      signature: """
        gwl9HoTvw6G-wk7xFVg0dsMVMfD6Ew4H3bliPdACuER0JBFToR4GAcyXV2UVJix4IknJywJEahAz_JljcqRM5ncLR_eGopXVyM4x\
        xOHY4DiSIQ9fz23KxvUFjP3PP9USg3js4iBtlFkQNzPCH5EUZFQPigo0DbptNCamYcZtW7yZkzQ2X5IC-2jdx04Sda8QAlGrFIWw\
        _Ns6IhNhMekMhaXlwxWGaqSwsRzb9taZ6oE95pi7VQVZ0Fyih2lo8gJczql-WRyMzNVJKKkGFjzJCDZ-aKbMalJzmAs46u2QBXP_\
        yi1SRJidfBCv9sDepobumdBxpnYqaff850ieBXciUw
        """),
    Sample(
      algorithm: "RS512",
      signature: """
        aIsY8q7zPZooDbW0cw34EjreC1g9eZueJp_5xqwwGfwCzLvj7lvZGOlJ7_7sWYCZYhs5s_whxUu8DDRyM3W-7N6la8lQ6i5_cHEc\
        tQjmwmG174Yynl-XjCtTUu6Aoj6FBsB1q6aeMKhdA6xrMG7old2tFppuBeOnlbvaWH0fGPnrvN_B-7CEK8CsqeQXsV_c0PE-1izT\
        vuJCQ0I7myM3n4PHWdQimcM6qBRrq7eF4gkD-GcxJiN-PrBvH4UZF4lLr9tRZ9YnYeXbQeLOV2Fqoomp2P3U34a7CxbkgR3OKFDc\
        Elcp7TThb27wmHSxwO78VgmWnys6sWSso7K2gGlkPQ
        """),
    Sample(
      algorithm: "PS512",
      signature: """
        p6DvOP51kaIuVGgFvaAZmKS_Yc-PhatrgGsb0Dbv_iacI3OVy6qRFKg7QyMxqDKWkrO6cE2IhbNLy_sHBFne21455Z6UZmud5LJl\
        09zWW_JXczAai4_Ag2Kg2sZnnI6l18LlY6e6BkioXh20tr9iXkk8XspxwnGLpe7x0d7_M6KS5NvXslkQ1TPPSLTXXsorVFAAmc8T\
        -V0S3tWYCGe5uZ1Sdt8WnhXustsBbWa2NlOzD_eJlzhiabr0MWCY0zWuP_xq29kKsj_vQgQ01fTXo2PJL-ohtihmavE7NHOTH-og\
        AMGHnsW_NJOC1qRTZXAXbhbtlD0MdFnrc71hLdTchg
        """),
    Sample(
      algorithm: "ES256", x: "ztOfXfcNCCuUwJ-zDFlJt38EFUMa_JnAXR0r0XxvCUQ",
      y: "RKQHY1zDskuYT2cunilOkE-wzyIvexho021RNMyCuWE",
      signature: """
        e4Plat6yLps9WllZFhTFtbUReSVYe9pwl-ZxtxI6w32yGeScpL2Lwc0OptcC30jjGG16_H_iwv3bbOTLg3VAFQ
        """),
    Sample(
      algorithm: "ES384", x: "M_9ACdsP9x177qYS98jbFZnaMTA1pTD3VKqsLAqDjUTl17WCfnnR7NBfd2DrT5gP",
      y: "Uas5JQmSBHFzABpO2jUjxqIlt3CHdt0-iVMWw_vl7p9eKP6YCkKzIvPDZ3Kwiez3",
      signature: """
        ODOcAg05ApZiNMC4XgXHwG_APaIrmHuGWKRhXbZEheK9-ontsqwXqnhHeb4Z0i6u5Ku4rgL5WTjj5aw6rybM-LWfXOZREge9n3HT\
        OKRVQCtH0a3GjMRoRcsVDQ6DOHry
        """),
    Sample(
      algorithm: "ES512", x: "AC4VU2lSyLomJzLw_Rx_5IjucwFgUA9-76mVGgM-Lb_rHiL6rjsK2I1BTmJmaoYoHsVFbv3GeF0JW0gv6y_bFc3T",
      y: "AMaXbAYtQsJH9Ry0hvmC-nyjJSm92PeoM2yK3eFgEkUK181ySS_ufNyIofWpKz67PZpVSRY7kqs8NsGXbJgNMUxU",
      signature: """
        AK5ZAFotv0i--gXMCmwWx-0nGUdEBn5eKyP4R6PP3k9Kbf-1YLqCsyTUkri2vTPjKR8lzMTfY59ggvo7grqzMdAkAIyPLfq0QlAA\
        _DfXUUdF46SJt4iy75jximovo7ecyKhPScF0uEJuCgM_rDlqQ7x94V5lUnnoQXDTP7tWpQZhwD95
        """),
    Sample(
      algorithm: "EdDSA", x: "BOpa6HuKc9P5DFu8w5p2ZYipRdVwhr1Axxgt13d8asI",
      signature: """
        ySMHip8HgSe_4mdT2fTUKhI50rJ1ZPVRl1pjY8rNCn9GmKf9jZ9BFc8BB2o7_DEdab2cO28UKe2gGy2etw4FBA
        """),
  ]
}
