/** An engine part of signed calls, and a loopback server of certificates. */
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { SignJWT } from 'jose'
import { onTestFinished } from 'vitest'
import type { CallToVerify } from '../../schema/contracts/stir.ts'
import { Stir, type StirDeps } from '../../engine/stir/stir.ts'
import type { StirKeyRecord } from '../../engine/stir/stir-store.ts'
import type { Signer } from './stir-pki.ts'

/** Seconds since 1970: later than the certificates that the test makes. */
export const now = Math.floor(Date.now() / 1_000) + 6 * 3_600

interface RigOptions extends Partial<StirDeps> {
  readonly keys?: readonly StirKeyRecord[]
  /** PEM. */
  readonly trusted?: readonly string[]
}

export async function openStir({ keys = [], trusted = [], ...deps }: RigOptions = {}) {
  const logged: string[] = []
  const stir = new Stir({
    load: () =>
      Promise.resolve({
        keys,
        authorities: trusted.map((certificate, index) => ({ name: `${index}`, certificate })),
      }),
    authoritiesFile: () => Promise.resolve(undefined),
    publicUrl: 'https://tollgate.example',
    maxAgeSeconds: 60,
    hosts: [],
    signingService: undefined,
    resolve: () => Promise.resolve([{ address: '127.0.0.1', family: 4 }]),
    allowPrivate: true,
    now: () => now * 1_000,
    steadyNow: () => performance.now(),
    schedule: (work, delayMs) => {
      const timer = setTimeout(work, delayMs)
      return () => clearTimeout(timer)
    },
    log: (_, text) => void logged.push(text),
    ...deps,
  })
  await stir.reload()
  onTestFinished(() => stir.stop())
  return { stir, logged }
}

export const keyRecord = (signer: Signer, more: Partial<StirKeyRecord> = {}): StirKeyRecord => ({
  id: 1,
  tenantId: null,
  name: 'key',
  privateKey: signer.keyPem,
  certificate: signer.chain,
  x5u: null,
  validFrom: null,
  validUntil: null,
  isActive: true,
  ...more,
})

type Answer = (request: http.IncomingMessage, response: http.ServerResponse) => void

/** A server on loopback; the answers are by path. */
export async function serve(answers: Record<string, string | Buffer | Answer>) {
  const asked: string[] = []
  const server = http.createServer((request, response) => {
    asked.push(request.url ?? '')
    const answer = answers[request.url ?? '']
    if (typeof answer === 'function') answer(request, response)
    else if (answer === undefined) response.writeHead(404).end()
    else response.end(answer)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  return { url: (path: string) => `http://127.0.0.1:${port}${path}`, asked, answers }
}

export interface Claims {
  readonly orig?: unknown
  readonly dest?: unknown
  readonly iat?: unknown
  readonly attest?: string
  readonly origid?: string
  readonly div?: unknown
}

export const ORIG = '12155551212'
export const DEST = '12155551213'
export const origid = '123e4567-e89b-12d3-a456-426655440000'

/** A PASSporT of SHAKEN by the second implementation (jose), as a value of `Identity`. */
export async function signedByJose(
  signer: Pick<Signer, 'key'>,
  x5u: string,
  claims: Claims = {},
  { ppt = 'shaken', header = {}, info = x5u, tail = '' } = {},
): Promise<string> {
  const own = ppt === 'shaken' ? { attest: 'A', origid } : {}
  const all = { orig: { tn: ORIG }, dest: { tn: [DEST] }, iat: now, ...own, ...claims }
  const jws = await new SignJWT(all as Record<string, unknown>)
    .setProtectedHeader({
      ...{ alg: 'ES256', typ: 'passport', x5u },
      ...(ppt !== '' && { ppt }),
      ...header,
    })
    .sign(signer.key)
  return `${jws};info=<${info}>;alg=ES256${ppt === '' ? '' : `;ppt="${ppt}"`}${tail}`
}

export const callWith = (...identities: readonly string[]): CallToVerify => ({
  identities,
  orig: `+${ORIG}`,
  dest: `+${DEST}`,
  now,
})
