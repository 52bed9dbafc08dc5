/** Every answer of `/mcp`, as it stands on the wire, against the protocol's own schemas. */
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { specTypeSchemas } from '@modelcontextprotocol/server'
import { expect, test } from 'vitest'
import { type Era, eras, newClient } from '../../../support/mcp-client.ts'
import { endedCall, openToolRig } from '../../../support/tools-rig.ts'

const resultOf = {
  initialize: specTypeSchemas.InitializeResult,
  'server/discover': specTypeSchemas.DiscoverResult,
  'tools/list': specTypeSchemas.ListToolsResult,
  'tools/call': specTypeSchemas.CallToolResult,
  'resources/list': specTypeSchemas.ListResourcesResult,
  'resources/templates/list': specTypeSchemas.ListResourceTemplatesResult,
  'resources/read': specTypeSchemas.ReadResourceResult,
  'prompts/list': specTypeSchemas.ListPromptsResult,
  'prompts/get': specTypeSchemas.GetPromptResult,
} as const

interface Exchange {
  readonly method: string
  readonly messages: readonly Readonly<Record<string, unknown>>[]
}

/** The official client asks for everything that there is; what came back is kept. */
async function exchanges(era: Era): Promise<readonly Exchange[]> {
  const { app, root } = await openToolRig()
  const kept: Exchange[] = []
  const client = newClient(era)
  const transport = new StreamableHTTPClientTransport(new URL('http://localhost/mcp'), {
    requestInit: { headers: { Authorization: `Bearer ${root}` } },
    fetch: async (url, init) => {
      const response = await app.request(String(url), init)
      // GET and DELETE ask for a stream and for the end of a session: no message, and none comes back.
      if (init?.method !== 'POST') return response
      const { method = '' } = JSON.parse(typeof init.body === 'string' ? init.body : '{}') as {
        method?: string
      }
      kept.push({ method, messages: messagesIn(await response.clone().text()) })
      return response
    },
  })
  await client.connect(transport)
  await client.listTools()
  await client.callTool({ name: 'explain_call', arguments: { call_uuid: endedCall } })
  await client.callTool({ name: 'get_dispatcher_status', arguments: { setId: 'x' } })
  await client.callTool({ name: 'no_such_tool', arguments: {} }).catch(() => undefined)
  const { resources } = await client.listResources()
  for (const { uri } of resources) await client.readResource({ uri })
  await client.listResourceTemplates()
  const { prompts } = await client.listPrompts()
  for (const prompt of prompts) {
    const given = (prompt.arguments ?? []).map(({ name }) => [name, endedCall])
    await client.getPrompt({ name: prompt.name, arguments: Object.fromEntries(given) })
  }
  await client.close()
  return kept
}

/** JSON, or the data lines of an event stream. */
const messagesIn = (text: string): Exchange['messages'] =>
  (text.startsWith('{')
    ? [text]
    : [...text.matchAll(/^data: (.+)$/gm)].map(([, data]) => data ?? '')
  )
    .filter((each) => each !== '')
    .map((each) => JSON.parse(each) as Readonly<Record<string, unknown>>)

/** Fails with the method and what is wrong. */
function expectToBe(
  schema: (typeof specTypeSchemas)[keyof typeof specTypeSchemas],
  method: string,
  value: unknown,
): void {
  const { issues } = schema['~standard'].validate(value)
  expect({ method, issues }).toEqual({ method, issues: undefined })
}

test.each(eras)(
  'every answer to a %s client is the protocol’s',
  { timeout: 30_000 },
  async (era) => {
    const kept = await exchanges(era)
    const checked = new Set<string>()
    for (const { method, messages } of kept)
      for (const message of messages) {
        expectToBe(specTypeSchemas.JSONRPCMessage, method, message)
        if (!('result' in message)) continue
        const schema = Object.entries(resultOf).find(([name]) => name === method)?.[1]
        if (schema === undefined) throw new Error(`an answer to ${method} is not checked`)
        expectToBe(schema, method, message['result'])
        checked.add(method)
      }
    const handshake = era === 'legacy' ? 'initialize' : 'server/discover'
    expect([...checked]).toEqual(
      expect.arrayContaining([
        handshake,
        'tools/list',
        'tools/call',
        'prompts/list',
        'prompts/get',
      ]),
    )
    const errors = kept.flatMap(({ messages }) => messages.filter((message) => 'error' in message))
    expect(errors).toMatchObject([{ error: { code: -32_602 } }])
  },
)
