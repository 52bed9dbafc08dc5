/**
 * CPU of a signature and of a verification with a certificate in memory, as a call has them: the
 * whole way through `Stir`.
 */
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { Stir } from '../../engine/stir/stir.ts'
import { StirPki } from '../support/stir-pki.ts'
import { spread } from './load/figures.ts'
import { signedCalls } from './load/signed-load.ts'

export const describe =
  'signing and verifying a call (STIR/SHAKEN): CPU µs each; the part `calls`: through two ' +
  'instances; arguments: rate=300 seconds=10'

const CALLS = 2_000
const ROUNDS = 9

export async function run([part, ...words]: readonly string[] = []): Promise<void> {
  if (part === 'calls') return signedCalls(words)
  const pki = new StirPki()
  const { chain, keyPem } = pki.sign('SHAKEN 1234')
  const server = http.createServer((_, response) => void response.end(chain))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const key = {
    ...{ id: 1, tenantId: null, name: 'bench', privateKey: keyPem, certificate: chain },
    ...{ x5u: `http://127.0.0.1:${port}/a.pem`, validFrom: null, validUntil: null, isActive: true },
  }
  const stir = new Stir({
    load: () =>
      Promise.resolve({ keys: [key], authorities: [{ name: 'root', certificate: pki.root }] }),
    authoritiesFile: () => Promise.resolve(undefined),
    publicUrl: undefined,
    maxAgeSeconds: 60,
    hosts: [],
    signingService: undefined,
    resolve: () => Promise.resolve([]),
    allowPrivate: true,
    now: Date.now,
    steadyNow: () => performance.now(),
    schedule: (work, delayMs) => {
      const timer = setTimeout(work, delayMs)
      return () => clearTimeout(timer)
    },
    log: (_, text) => console.log(text),
  })
  await stir.reload()
  await measure(stir)
  stir.stop()
  server.close()
  pki.remove()
}

async function measure(stir: Stir): Promise<void> {
  const signing: number[] = []
  const verifying: number[] = []
  let count = 0
  for (let round = 0; round < ROUNDS; round += 1) {
    const iat = Math.floor(Date.now() / 1_000)
    const numbers = Array.from({ length: CALLS }, () => (count += 1))
    const identities: string[] = []
    signing.push(
      microsOf(() => {
        for (const number of numbers) {
          const signed = stir.sign(callOf(number, iat))
          if (!(signed instanceof Promise) && signed.kind === 'signed')
            identities.push(...signed.identities)
        }
      }),
    )
    const calls = identities.map((identity, index) => {
      const { orig, dest } = callOf(numbers[index] ?? 0, iat)
      return { identities: [identity], orig, dest, now: iat, callId: `${numbers[index] ?? 0}` }
    })
    // The first one fetches the certificate.
    if (calls[0] !== undefined) await stir.verify(calls[0])
    let passed = 0
    verifying.push(
      microsOf(() => {
        for (const call of calls) {
          const verified = stir.verify(call)
          if (!(verified instanceof Promise) && verified.verification === 'passed') passed += 1
        }
      }),
    )
    if (passed !== CALLS) throw new Error(`${passed} of ${CALLS} calls passed`)
  }
  // The first round warms up.
  console.log(`  signing:   ${spread(signing.slice(1), 1)} µs a call (least to most)`)
  console.log(`  verifying: ${spread(verifying.slice(1), 1)} µs a call (least to most)`)
}

const callOf = (number: number, iat: number) => ({
  ...{ tenantId: null, orig: `+1215${5_000_000 + number}`, dest: '+12155551213' },
  ...{ attestation: 'A' as const, origid: '123e4567-e89b-12d3-a456-426655440000', iat },
})

/** CPU of this process for one call. */
function microsOf(work: () => void): number {
  const before = process.cpuUsage()
  work()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / CALLS
}
