/**
 * Signed and verified calls: SIPp → an instance that signs → an instance that refuses who is not
 * proved → SIPp. Each lost call has been refused, or was not in time.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { StirPki } from '../../support/stir-pki.ts'
import { TollgateProcess } from '../../support/tollgate-process.ts'
import { caller, oneCustomer } from './one-customer.ts'
import { numbersOf } from './options.ts'
import { cpuMicros } from './process-cpu.ts'
import { placeCalls, startNode } from './sipp-load.ts'

const usual = { rate: 300, seconds: 10 }
const settings = { LOG_LEVEL: 'error', STIR_PRIVATE_TARGETS: 'allow' }
/** A program of the platform reaches a carrier only where a hook sends it. */
const hook = `export const onInvite = () => ({ carriers: ['out'] })\n`

export async function signedCalls(words: readonly string[]): Promise<void> {
  const { rate, seconds } = numbersOf(words, usual)
  const pki = new StirPki()
  const { chain, keyPem } = pki.sign('SHAKEN 1234')
  const server = http.createServer((_, response) => void response.end(chain))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const folder = mkdtempSync(join(tmpdir(), 'signed-'))
  const file = join(folder, 'hooks.ts')
  writeFileSync(file, hook)
  const node = await startNode()
  const verifying = await TollgateProcess.start(verifier(node.port, pki.root), settings)
  const x5u = `http://127.0.0.1:${(server.address() as AddressInfo).port}/a.pem`
  const key = { name: 'bench', private_key: keyPem, x5u }
  const signing = await TollgateProcess.start(signer(verifying.sipPort, key), {
    ...settings,
    HOOKS: file,
  })
  try {
    // The certificates are fetched, and the code is warm.
    await placeCalls(signing.sipPort, 50, 200, caller)
    const programs = [signing.pid, verifying.pid]
    const before = programs.map((pid) => cpuMicros([pid]))
    const result = await placeCalls(signing.sipPort, rate, rate * seconds, caller)
    const [signed = 0, verified = 0] = programs.map(
      (pid, index) => (cpuMicros([pid]) - (before[index] ?? 0)) / Math.max(1, result.succeeded),
    )
    console.log(
      `  ${rate} signed and verified calls/s for ${seconds} s: ${result.succeeded} of ` +
        `${result.calls} connected, setup p50 ${result.setupP50Ms} p99 ${result.setupP99Ms} ms; ` +
        `${signed.toFixed(0)} µs of CPU a call where they are signed, ${verified.toFixed(0)} ` +
        'where they are verified',
    )
  } finally {
    await signing.stop()
    await verifying.stop()
    await node.stop()
    server.close()
    pki.remove()
    rmSync(folder, { recursive: true, force: true })
  }
}

const verifier = (nodePort: number, certificate: string) => ({
  ...oneCustomer([nodePort]),
  carriers: [
    {
      name: 'in',
      direction: 'in',
      customer: 'load',
      gateways: [{ host: '127.0.0.1' }],
      stir: { verify: 'refuse' },
    },
  ],
  stir_authorities: [{ name: 'root', certificate }],
})

const signer = (port: number, key: object) => ({
  ...oneCustomer([1]),
  carriers: [
    {
      name: 'out',
      direction: 'out',
      gateways: [{ host: '127.0.0.1', port }],
      stir: { sign: true },
    },
  ],
  outbound_routes: [{ name: 'all', carrier: 'out', prefix: '1', mode: 'static' }],
  stir_keys: [key],
})
