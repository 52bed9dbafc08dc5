/** The certificates of the two HTTP servers. */
import type { CertificateStatus } from '../schema/contracts/certificates.ts'
import type { Log } from '../schema/contracts/log.ts'
import type { CertificateFiles, Config } from './config.ts'
import { Credentials } from './sip-server/index.ts'

export class HttpCertificates {
  /** Undefined: plain HTTP. The same for the edge. */
  readonly api: Credentials | undefined
  readonly edge: Credentials | undefined

  /**
   * @param now milliseconds UTC.
   * @throws {CertificateError} a file cannot be used.
   */
  constructor(
    { apiTls, edgeTls }: Pick<Config, 'apiTls' | 'edgeTls'>,
    log: Log,
    now: () => number,
  ) {
    const open = (files: CertificateFiles | undefined): Credentials | undefined =>
      files && new Credentials(files, log, now)
    this.api = open(apiTls)
    this.edge = open(edgeTls)
  }

  list(): readonly CertificateStatus[] {
    return (['api', 'edge'] as const).flatMap((use) => {
      const { options, notAfter } = this[use] ?? {}
      return options && notAfter !== undefined ? [{ use, file: options.certFile, notAfter }] : []
    })
  }

  /** Reads the files again; bad ones are logged and change nothing. */
  reload(): void {
    this.api?.reload()
    this.edge?.reload()
  }

  stop(): void {
    this.api?.stop()
    this.edge?.stop()
  }
}
