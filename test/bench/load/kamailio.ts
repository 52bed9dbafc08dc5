/** Kamailio at its best doing the same job with the same nodes, where it is installed. */
import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '../../support/free-port.ts'
import { processTree } from './process-cpu.ts'

/** Tells what is missing for the peer, as a sentence; undefined: nothing. */
export function whyNoKamailio(): string | undefined {
  const finds = (command: string): boolean => spawnSync('sh', ['-c', command]).status === 0
  if (!finds('command -v kamailio')) return 'kamailio is not installed'
  if (finds('find /usr/lib* -path "*/kamailio/modules/http_client.so" | grep -q .'))
    return undefined
  return 'kamailio has no http_client.so (Debian package kamailio-utils-modules)'
}

export interface Peer {
  readonly sipPort: number
  /** Kamailio's processes and the charging server's. */
  readonly pids: () => { readonly proxy: readonly number[]; readonly charging: readonly number[] }
  readonly stop: () => Promise<void>
}

export async function startKamailio(nodePorts: readonly number[]): Promise<Peer> {
  const folder = mkdtempSync(join(tmpdir(), 'kamailio-'))
  const [sipPort, httpPort] = [await freePort(), await freePort()]
  const nodes = nodePorts.map((port) => `1 sip:127.0.0.1:${port}\n`).join('')
  writeFileSync(join(folder, 'dispatcher.list'), nodes)
  const config = readFileSync(join(import.meta.dirname, 'kamailio.cfg'), 'utf8')
    .replaceAll('@SIP@', String(sipPort))
    .replaceAll('@HTTP@', String(httpPort))
    .replaceAll('@RUN@', folder)
  const configFile = join(folder, 'kamailio.cfg')
  writeFileSync(configFile, config)

  const charging = spawn(
    process.execPath,
    [join(import.meta.dirname, 'charging-server.mjs'), String(httpPort)],
    { stdio: ['ignore', 'pipe', 'ignore'] },
  )
  await once(charging.stdout, 'data')
  const proxy = spawn(
    'kamailio',
    ['-f', configFile, '-DD', '-E', '-Y', folder, '-x', 'fm', '-X', 'fm', '-m', '1024', '-M', '16'],
    { stdio: ['ignore', 'ignore', 'pipe'] },
  )
  let lastWords = ''
  proxy.stderr.on('data', (chunk: Buffer) => (lastWords = chunk.toString().slice(-500)))
  await once(proxy, 'spawn')
  await new Promise((resolve) => setTimeout(resolve, 3_000))
  if (hasEnded(proxy)) {
    charging.kill('SIGTERM')
    throw new Error(`kamailio did not start: ${lastWords}`)
  }
  return {
    sipPort,
    pids: () => ({ proxy: processTree(proxy.pid ?? 0), charging: [charging.pid ?? 0] }),
    stop: async () => {
      for (const child of [proxy, charging]) {
        if (hasEnded(child)) continue
        const closed = once(child, 'close')
        child.kill('SIGTERM')
        await closed
      }
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

const hasEnded = ({ exitCode, signalCode }: ChildProcess): boolean =>
  exitCode !== null || signalCode !== null
