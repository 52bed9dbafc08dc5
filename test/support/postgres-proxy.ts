/** A way to the PostgreSQL server of the tests that can be slow, or cut. */
import { mkdtempSync, rmSync } from 'node:fs'
import { connect, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'

export interface PostgresProxy {
  /** The URL of the same database, through the proxy. */
  readonly url: string
  /** Each answer comes so much later. Milliseconds. */
  delayMs: number
  /** Breaks all connections, and refuses new ones until `mend`. */
  cut(): void
  mend(): void
  close(): void
}

export async function postgresProxy(url: string): Promise<PostgresProxy> {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-proxy-'))
  const sockets = new Set<Socket>()
  const state = { delayMs: 0, isCut: false }
  const server = createServer((client) => {
    if (state.isCut) return client.destroy()
    const target = connect(targetOf(url))
    for (const socket of [client, target]) {
      sockets.add(socket)
      socket.on('close', () => {
        sockets.delete(socket)
        client.destroy()
        target.destroy()
      })
      socket.on('error', () => socket.destroy())
    }
    client.pipe(target)
    // Waiting bytes must not be overtaken when the way becomes quick again.
    let written: Promise<unknown> = Promise.resolve()
    target.on('data', (bytes) => {
      const at = performance.now() + state.delayMs
      const isDue = (): Promise<unknown> => pause(Math.max(0, at - performance.now()))
      written = (state.delayMs === 0 ? written : written.then(isDue)).then(() =>
        client.write(bytes),
      )
    })
    return undefined
  })
  await new Promise<void>((resolve) => server.listen(join(folder, '.s.PGSQL.5432'), resolve))
  const through = new URL(url)
  through.hostname = 'localhost'
  through.port = ''
  through.searchParams.set('host', folder)
  const cut = (): void => {
    state.isCut = true
    for (const socket of sockets) socket.destroy()
  }
  return Object.assign(state, {
    url: through.href,
    cut,
    mend: () => {
      state.isCut = false
    },
    close: () => {
      cut()
      server.close()
      rmSync(folder, { recursive: true, force: true })
    },
  })
}

function targetOf(url: string): { path: string } | { host: string; port: number } {
  const { hostname, port, searchParams } = new URL(url)
  const folder = searchParams.get('host')
  if (folder !== null) return { path: join(folder, '.s.PGSQL.5432') }
  return { host: hostname, port: Number(port === '' ? 5432 : port) }
}
