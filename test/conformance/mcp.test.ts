/**
 * The official conformance suite of MCP against the running program. It knows no credentials, so
 * that a proxy of this test adds the key. `test/run.mjs` installs it apart from the project.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { expect, onTestFinished, test } from 'vitest'
import { startProgram } from '../process/program.ts'
import { settingsOfDatabase } from '../support/program-database.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const suite = join(
  import.meta.dirname,
  '../../node_modules/.conformance/node_modules/@modelcontextprotocol/conformance/dist/index.js',
)
const folder = temporaryFolder()

test.each(['2026-07-28', '2025-11-25'])(
  'every scenario of %s that needs no tools of the suite itself passes',
  async (revision) => {
    const port = await openProxy(revision)
    const words = ['server', '--url', `http://localhost:${port}/mcp`, '--requirements', revision]
    const baseline = join(import.meta.dirname, 'mcp-baseline.yml')
    const child = spawn(
      process.execPath,
      [suite, ...words, '--expected-failures', baseline],
      // It leaves its results in the working directory.
      { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] },
    )
    const said = Promise.all([text(child.stdout), text(child.stderr)])
    const [code] = (await once(child, 'exit')) as [number | null]
    const [output, complaints] = await said
    // Behind the totals stand what failed without being on the list, and what is on it for nothing.
    const verdict = output.slice(output.indexOf('\nTotal: ')) + complaints
    expect([code, verdict]).toEqual([0, expect.stringMatching(/^\nTotal: [1-9]\d+ passed/)])
  },
  180_000,
)

/** A serving process behind a proxy that presents a key; answers the proxy's port. */
async function openProxy(name: string): Promise<number> {
  const environment = await settingsOfDatabase(join(folder, `${name}.db`))
  const serving = startProgram(['serve'], environment)
  const api = /api=127\.0\.0\.1:(\d+)/.exec(await serving.line(/^ready /))?.[1] ?? ''
  const words = ['key', 'create', '--name', 'suite', '--scopes', '*']
  const key = await startProgram(words, environment).line(/^sbc_live_/)
  const proxy = createServer((incoming, outgoing) => {
    const { method = '', url: path = '', headers } = incoming
    const asked = request({
      host: '127.0.0.1',
      port: api,
      method,
      path,
      headers: { ...headers, 'x-api-key': key },
    })
    asked.on('response', (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.pipe(outgoing)
    })
    asked.on('error', () => outgoing.destroy())
    outgoing.on('close', () => asked.destroy())
    incoming.pipe(asked)
  })
  proxy.listen(0, '127.0.0.1')
  await once(proxy, 'listening')
  onTestFinished(() => {
    proxy.closeAllConnections()
    proxy.close()
  })
  return (proxy.address() as AddressInfo).port
}
