import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { eras, newClient, textOf } from '../support/mcp-client.ts'
import { programEnvironment } from '../support/program-environment.ts'
import { TollgateProcess } from '../support/tollgate-process.ts'
import { eventually } from '../support/waiting.ts'
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

test.each(eras)(
  'a %s client on standard input is told when a resource has changed to which it has subscribed',
  async (era) => {
    const key = await tollgate.createKey('--name', `${era} subscriber`, '--scopes', '*')
    const client = newClient(era)
    onTestFinished(() => client.close())
    const told: string[] = []
    client.setNotificationHandler('notifications/resources/updated', ({ params }) => {
      told.push(params.uri)
    })
    await client.connect(stdio([], { TOLLGATE_URL: url, TOLLGATE_KEY: key }))
    const uri = 'tollgate://proposals'
    const address = era === 'modern' ? '203.0.113.9' : '203.0.113.10'
    if (era === 'modern') await client.listen({ resourceSubscriptions: [uri] })
    else await client.subscribeResource({ uri })
    const given = {
      tool: 'ban_address',
      arguments: { address },
      reason: 'it guesses',
    }
    const proposed = await client.callTool({ name: 'propose_change', arguments: given })
    expect(proposed.isError ?? false).toBe(false)
    await eventually(() => expect(told).toEqual([uri]))
    const { contents } = await client.readResource({ uri })
    const { text } = contents[0] as { text: string }
    expect([text, text]).toEqual([
      expect.stringContaining('ban_address'),
      expect.stringContaining(address),
    ])
    if (era === 'modern') return
    const refused = client.subscribeResource({ uri: 'tollgate://telemetry' })
    await expect(refused).rejects.toThrow('these can')
    await client.unsubscribeResource({ uri })
  },
)

test('the official client reaches /mcp over a socket, and a page of a stranger does not', async () => {
  const key = await tollgate.createKey('--name', 'page', '--scopes', '*')
  const client = new Client({ name: 'test', version: '1' })
  onTestFinished(() => client.close())
  const headers = { 'X-API-Key': key }
  await client.connect(
    new StreamableHTTPClientTransport(new URL(`${url}/mcp`), { requestInit: { headers } }),
  )
  const status = await client.callTool({ name: 'get_telemetry', arguments: {} })
  expect(status.structuredContent).toMatchObject({ data: { calls: { active: 0 } } })

  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' })
  const ask = (more: Record<string, string>) =>
    fetch(`${url}/mcp`, {
      method: 'POST',
      body,
      headers: {
        ...headers,
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        ...more,
      },
    })
  expect((await ask({ origin: 'https://evil.example.com' })).status).toBe(403)
  const fine = await ask({})
  expect([fine.status, fine.headers.get('x-ratelimit-limit')]).toEqual([200, '1200'])
})

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
