import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { eras, newClient, textOf } from '../support/mcp-client.ts'
import { programEnvironment } from '../support/program-environment.ts'
import { TollgateProcess } from '../support/tollgate-process.ts'
import { startProgram } from './program.ts'

let tollgate: TollgateProcess
let url: string

beforeAll(async () => {
  tollgate = await TollgateProcess.start({})
  url = `http://127.0.0.1:${tollgate.apiPort}`
})
afterAll(() => tollgate.stop())

/** `tollgate mcp` as a client starts it. */
function stdio(words: readonly string[], env: Record<string, string>) {
  return new StdioClientTransport({
    command: process.execPath,
    args: ['dist/main.js', 'mcp', ...words],
    env: { ...programEnvironment, ...env },
    stderr: 'pipe',
  })
}

test.each(eras)(
  'tollgate mcp brings the tools of a running process to a %s client',
  async (era) => {
    const name = `${era} agent`
    const key = await tollgate.createKey('--name', name, '--scopes', '*')
    const client = newClient(era)
    onTestFinished(() => client.close())
    await client.connect(stdio([], { TOLLGATE_URL: url, TOLLGATE_KEY: key }))
    const { tools } = await client.listTools()
    expect(tools.map((tool) => tool.name)).toContain('revoke_sbc_api_key')
    const listed = await client.callTool({ name: 'list_sbc_api_keys', arguments: {} })
    expect(listed.structuredContent).toMatchObject({ data: { total: expect.any(Number) } })
    expect(JSON.stringify(listed.structuredContent)).toContain(JSON.stringify(name))
    const wrong = await client.callTool({ name: 'get_dispatcher_status', arguments: { setId: 7 } })
    expect([wrong.isError, textOf(wrong)]).toEqual([true, expect.stringMatching(/without setId/)])
    const sets = await client.readResource({ uri: 'tollgate://dispatcher/sets' })
    expect(sets.contents).toHaveLength(1)
    await expect(client.callTool({ name: 'no_such_tool' })).rejects.toThrow('Unknown tool')

    // It revokes the key that it works with: the next call is refused, and says so.
    await client.callTool({
      name: 'revoke_sbc_api_key',
      arguments: { identifier: name, confirm_self: true },
    })
    const refused = await client.callTool({ name: 'list_sbc_api_keys', arguments: {} })
    expect([refused.isError, textOf(refused)]).toEqual([true, expect.stringMatching(/revoked/)])
  },
)

test('tollgate mcp without a key, with a refused one or without a process says so in a line', async () => {
  const token = `sbc_live_${'x'.repeat(64)}`
  const run = async (...words: string[]) => {
    const program = startProgram(['mcp', ...words])
    return [await program.ended, program.printed, program.complaints]
  }
  const runs = [
    run(),
    run('--key', 'short'),
    run('--url', url, '--key', token),
    run('--url', 'http://127.0.0.1:9', '--key', token),
  ]
  expect(await Promise.all(runs)).toEqual([
    [2, [], [expect.stringMatching(/TOLLGATE_KEY/)]],
    [2, [], [expect.stringMatching(/no application key/)]],
    [1, [], [expect.stringMatching(/refuses the key/)]],
    [1, [], [expect.stringMatching(/does not answer at http:\/\/127\.0\.0\.1:9/)]],
  ])
})
