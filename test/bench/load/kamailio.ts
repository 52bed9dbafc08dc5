/** Kamailio doing the same job with the same nodes, where it is installed. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '../../support/free-port.ts'
import { processTree } from './process-cpu.ts'

export const isKamailioInstalled = (): boolean =>
  spawnSync('sh', ['-c', 'command -v kamailio']).status === 0

export interface Peer {
  readonly sipPort: number
  /** Kamailio's processes and the charging server's. */
  readonly pids: () => { readonly proxy: readonly number[]; readonly charging: readonly number[] }
  readonly stop: () => Promise<void>
}

export async function startKamailio(nodePorts: readonly number[]): Promise<Peer> {
  const folder = mkdtempSync(join(tmpdir(), 'kamailio-'))
  const [sipPort, httpPort] = [await freePort(), await freePort()]
  const list = join(folder, 'dispatcher.list')
  writeFileSync(list, nodePorts.map((port) => `1 sip:127.0.0.1:${port}\n`).join(''))
  const config = readFileSync(join(import.meta.dirname, 'kamailio.cfg'), 'utf8')
    .replaceAll('@SIP@', String(sipPort))
    .replaceAll('@HTTP@', String(httpPort))
    .replaceAll('@LIST@', list)
  const configFile = join(folder, 'kamailio.cfg')
  writeFileSync(configFile, config)

  const charging = spawn(
    process.execPath,
    [
      ...['--import', 'tsx', join(import.meta.dirname, 'charging-server.ts')],
      ...[String(httpPort), join(folder, 'cdr.txt')],
    ],
    { stdio: ['ignore', 'pipe', 'ignore'] },
  )
  await once(charging.stdout, 'data')
  const proxy = spawn(
    'kamailio',
    ['-f', configFile, '-DD', '-Y', folder, '-m', '512', '-M', '16'],
    {
      stdio: 'ignore',
    },
  )
  await once(proxy, 'spawn')
  await new Promise((resolve) => setTimeout(resolve, 3_000))
  return {
    sipPort,
    pids: () => ({ proxy: processTree(proxy.pid ?? 0), charging: [charging.pid ?? 0] }),
    stop: async () => {
      for (const child of [proxy, charging]) {
        const closed = once(child, 'close')
        child.kill('SIGTERM')
        await closed
      }
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
