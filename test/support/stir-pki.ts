/**
 * Certificates of signers of calls, made at run time with the `openssl` program: an authority, one
 * below it, signers, and revocation lists.
 */
import { execFileSync } from 'node:child_process'
import { createPrivateKey, type KeyObject } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export interface Signer {
  /** PEM: its certificate, and those between it and the root. */
  readonly chain: string
  /** PEM: its certificate alone. */
  readonly certificate: string
  readonly keyPem: string
  readonly key: KeyObject
  readonly file: string
}

export interface SignerOptions {
  /** DER of the TNAuthList, as hexadecimal digits. */
  readonly tnAuthList?: string
  /** URL of its revocation list. */
  readonly listUrl?: string
  /** Further lines of the extensions, such as `basicConstraints=CA:true`. */
  readonly extensions?: readonly string[]
  readonly days?: number
  /** In OpenSSL's words: `prime256v1`. */
  readonly curve?: string
  /** The authority by which it is signed; absent: the root. */
  readonly by?: string
}

export class StirPki {
  readonly #folder = mkdtempSync(join(tmpdir(), 'stir-'))
  readonly name: string
  #count = 0

  constructor(name = 'root') {
    this.name = name
    this.#run(
      ...['req', '-x509', ...newKey(this.#path(`${name}.key`)), '-out', this.#path(`${name}.pem`)],
      ...['-days', '30', '-subj', `/CN=${name}`],
      ...['-addext', 'keyUsage=critical,keyCertSign,cRLSign'],
    )
    writeFileSync(this.#path('index'), '')
    writeFileSync(this.#path('ca.cnf'), caConfig(this.#folder))
  }

  get root(): string {
    return this.#text(`${this.name}.pem`)
  }

  remove(): void {
    rmSync(this.#folder, { recursive: true })
  }

  /** An authority below another one. */
  authority(name: string, options: SignerOptions = {}): void {
    const extensions = [
      'basicConstraints=critical,CA:true',
      'keyUsage=critical,keyCertSign,cRLSign',
    ]
    this.sign(name, { ...options, extensions: options.extensions ?? extensions })
  }

  sign(name: string, options: SignerOptions = {}): Signer {
    const { by = this.name, days = 10, curve, tnAuthList, listUrl, extensions } = options
    this.#count += 1
    const lines = [
      ...(extensions ?? ['keyUsage=critical,digitalSignature', 'basicConstraints=CA:false']),
      ...(tnAuthList === undefined ? [] : [`1.3.6.1.5.5.7.1.26=DER:${tnAuthList}`]),
      ...(listUrl === undefined ? [] : [`crlDistributionPoints=URI:${listUrl}`]),
    ]
    writeFileSync(this.#path(`${name}.ext`), `${lines.join('\n')}\n`)
    this.#run(
      ...['req', '-new', ...newKey(this.#path(`${name}.key`), curve), '-subj', `/CN=${name}`],
      ...['-out', this.#path(`${name}.csr`)],
    )
    this.#run(
      ...['x509', '-req', '-in', this.#path(`${name}.csr`), '-CA', this.#path(`${by}.pem`)],
      ...['-CAkey', this.#path(`${by}.key`), '-set_serial', String(1_000 + this.#count)],
      ...['-days', String(days), '-extfile', this.#path(`${name}.ext`)],
      ...['-out', this.#path(`${name}.pem`)],
    )
    const certificate = this.#text(`${name}.pem`)
    const keyPem = this.#text(`${name}.key`)
    const chain = by === this.name ? certificate : `${certificate}${this.#text(`${by}.pem`)}`
    const file = this.#path(`${name}.pem`)
    return { chain, certificate, keyPem, key: createPrivateKey(keyPem), file }
  }

  /** The revocation list of the root in PEM, with these certificates. */
  revocationList(...revoked: readonly Signer[]): string {
    const ca = ['ca', '-config', this.#path('ca.cnf'), '-cert', this.#path(`${this.name}.pem`)]
    const by = [...ca, '-keyfile', this.#path(`${this.name}.key`), '-md', 'sha256']
    for (const { file } of revoked) this.#run(...by, '-revoke', file)
    this.#run(...by, '-gencrl', '-crldays', '2', '-out', this.#path('list.pem'))
    return this.#text('list.pem')
  }

  #path(file: string): string {
    return join(this.#folder, file)
  }

  #text(file: string): string {
    return readFileSync(this.#path(file), 'utf8')
  }

  #run(...words: readonly string[]): void {
    execFileSync('openssl', words, { stdio: ['ignore', 'ignore', 'pipe'] })
  }
}

const newKey = (file: string, curve = 'prime256v1'): string[] => [
  ...['-newkey', 'ec', '-pkeyopt', `ec_paramgen_curve:${curve}`, '-nodes', '-keyout', file],
]

const caConfig = (folder: string): string => `
[ca]
default_ca = root
[root]
database = ${join(folder, 'index')}
default_md = sha256
default_crl_days = 2
unique_subject = no
`

/** Hexadecimal digits of a TNAuthList with one code of a service provider. */
export const providerList = (code: string): string => sequence(explicit(0xa0, ia5(code)))

/** The same with a range of numbers. */
export const rangeList = (first: string, count: number): string =>
  sequence(explicit(0xa1, sequence(`${ia5(first)}0202${count.toString(16).padStart(4, '0')}`)))

const element = (tag: number, hex: string): string =>
  `${tag.toString(16).padStart(2, '0')}${(hex.length / 2).toString(16).padStart(2, '0')}${hex}`
const ia5 = (text: string): string => element(0x16, Buffer.from(text).toString('hex'))
const sequence = (hex: string): string => element(0x30, hex)
const explicit = (tag: number, hex: string): string => element(tag, hex)
