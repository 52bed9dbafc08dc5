/**
 * Our certificate and the trusted CA certificates, from PEM files that may be renewed while we run.
 */
import { constants, X509Certificate } from 'node:crypto'
import { readFileSync, unwatchFile, watchFile } from 'node:fs'
import { createSecureContext, type SecureContext, type SecureContextOptions } from 'node:tls'
import { CertificateError } from '../errors.ts'
import type { ServerLog, TlsOptions } from '../options.ts'

/** How often the files are looked at; a renewal is not urgent. Milliseconds. */
const defaultWatchMs = 5_000

/** A certificate that has no longer to live is spoken of. Milliseconds. */
const soonMs = 14 * 24 * 3_600_000

export class Credentials {
  readonly options: TlsOptions
  readonly #log: ServerLog
  /** Milliseconds since the epoch. */
  readonly #now: () => number
  readonly #files: readonly string[]
  readonly #listeners: ((settings: SecureContextOptions) => void)[] = []
  #settings: SecureContextOptions
  #context: SecureContext

  /** @throws CertificateError when a file cannot be used; names it. */
  constructor(options: TlsOptions, log: ServerLog, now: () => number, watchMs = defaultWatchMs) {
    const { certFile, keyFile, chainFile, caFile } = options
    this.options = options
    this.#log = log
    this.#now = now
    this.#files = [certFile, keyFile, chainFile, caFile].filter((file) => file !== undefined)
    this.#settings = settingsFrom(options)
    this.#context = createSecureContext(this.#settings)
    this.#warnOfExpiry()
    for (const file of this.#files)
      watchFile(file, { interval: watchMs, persistent: false }, this.#changed)
  }

  /** Last moment at which the certificate is valid. Milliseconds UTC. */
  get notAfter(): number {
    return Date.parse(new X509Certificate(String(this.#settings.cert)).validTo)
  }

  /** Settings of a server. */
  get settings(): SecureContextOptions {
    return this.#settings
  }

  /** Context of a connection that we open; parsed once. */
  get context(): SecureContext {
    return this.#context
  }

  /** Calls `listener` with what holds from then on for new connections. */
  onChange(listener: (settings: SecureContextOptions) => void): void {
    this.#listeners.push(listener)
  }

  /** Reads the files again. When one is bad all stays as it was, and an error is logged. */
  reload(): void {
    try {
      const settings = settingsFrom(this.options)
      this.#context = createSecureContext(settings)
      this.#settings = settings
    } catch (error) {
      this.#log('error', 'the certificate is not renewed', {
        reason: error instanceof Error ? error.message : String(error),
      })
      return
    }
    for (const listener of this.#listeners) listener(this.#settings)
    this.#log('info', 'the certificate was read again', { file: this.options.certFile })
    this.#warnOfExpiry()
  }

  stop(): void {
    for (const file of this.#files) unwatchFile(file, this.#changed)
  }

  #warnOfExpiry(): void {
    const file = this.options.certFile
    const { notAfter } = this
    const validTo = new Date(notAfter).toISOString()
    const restMs = notAfter - this.#now()
    if (restMs < 0) this.#log('warn', 'the certificate has expired', { file, validTo })
    else if (restMs < soonMs) this.#log('warn', 'the certificate expires soon', { file, validTo })
  }

  readonly #changed = (): void => this.reload()
}

/**
 * The exchange of keys by RSA, or by DH that is not ephemeral: who gets the key later reads what
 * was recorded.
 */
const withoutForwardSecrecy = ':!kRSA:!kDH:!kECDH'

function settingsFrom({
  certFile,
  keyFile,
  chainFile,
  caFile,
  minVersion = 'TLSv1.2',
  ciphers = constants.defaultCipherList,
}: TlsOptions): SecureContextOptions {
  const own = usable(certFile, certificates)
  const chain = chainFile === undefined ? '' : usable(chainFile, certificates)
  const ca = caFile === undefined ? undefined : readAuthorities(caFile)
  const cert = chain === '' ? own : `${own}\n${chain}`
  const key = usable(keyFile, (pem) => void createSecureContext({ cert, key: pem }))
  return {
    cert,
    key,
    minVersion,
    ciphers: ciphers + withoutForwardSecrecy,
    ...(ca !== undefined && { ca }),
  }
}

/** @throws CertificateError */
export const readAuthorities = (file: string): string => usable(file, certificates)

function usable(file: string, check: (pem: string) => unknown): string {
  try {
    const pem = readFileSync(file, 'utf8')
    check(pem)
    return pem
  } catch (error) {
    throw new CertificateError(file, error)
  }
}

/** Node takes a list of authorities that holds none without a word. */
const certificates = (pem: string): unknown => new X509Certificate(pem)
