/**
 * Certificates made at run time with the `openssl` program: an authority, and what it has signed.
 */
import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

export interface Certificate {
  /** PEM files. */
  readonly certFile: string
  readonly keyFile: string
}

export class Authority {
  readonly #folder: string
  readonly #own: Certificate

  constructor(folder: string, name = 'authority') {
    this.#folder = folder
    this.#own = this.#files(name)
    openssl(
      'req',
      '-x509',
      ...newKey(this.#own),
      '-out',
      this.#own.certFile,
      '-days',
      '2',
      '-subj',
      `/CN=${name}`,
      '-addext',
      'keyUsage=keyCertSign',
    )
  }

  get file(): string {
    return this.#own.certFile
  }

  /** `names` as in subjectAltName, such as `DNS:sip.example.com` or `IP:127.0.0.1`. */
  sign(name: string, ...names: readonly string[]): Certificate {
    const files = this.#files(name)
    const request = join(this.#folder, `${name}.csr`)
    const extensions = join(this.#folder, `${name}.ext`)
    writeFileSync(extensions, `subjectAltName=${names.join(',')}\n`)
    openssl('req', '-new', ...newKey(files), '-subj', `/CN=${name}`, '-out', request)
    openssl(
      'x509',
      '-req',
      '-in',
      request,
      '-CA',
      this.#own.certFile,
      '-CAkey',
      this.#own.keyFile,
      '-CAcreateserial',
      '-days',
      '2',
      '-extfile',
      extensions,
      '-out',
      files.certFile,
    )
    return files
  }

  #files(name: string): Certificate {
    return {
      certFile: join(this.#folder, `${name}.pem`),
      keyFile: join(this.#folder, `${name}.key`),
    }
  }
}

/** Everything under which a test reaches this machine. */
export const loopbackNames = ['DNS:localhost', 'IP:127.0.0.1', 'IP:::1'] as const

const newKey = ({ keyFile }: Certificate): string[] => [
  '-newkey',
  'ec',
  '-pkeyopt',
  'ec_paramgen_curve:prime256v1',
  '-nodes',
  '-keyout',
  keyFile,
]

function openssl(...words: readonly string[]): void {
  execFileSync('openssl', words, { stdio: ['ignore', 'ignore', 'pipe'] })
}
