/** What a conversation about the tools costs: the list of them, and each answer. */
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { expect, test } from 'vitest'
import { allTools } from '../../../../control/agents/catalog/index.ts'
import { connectClient, eras, textOf } from '../../../support/mcp-client.ts'
import { endedCall, openToolRig, storeRecord } from '../../../support/tools-rig.ts'

const MAX_LIST_BYTES = 15_000

test.each(eras)('the list of all tools is at most 15,000 bytes (%s)', async (era) => {
  const rig = await openToolRig()
  const client = await connectClient(rig.app, rig.root, era)
  const { tools } = await client.listTools()
  expect(tools).toHaveLength(allTools.length)
  expect(Buffer.byteLength(JSON.stringify({ tools }))).toBeLessThanOrEqual(MAX_LIST_BYTES)
  await client.close()
})

test('describe_tool and REST have the full schemas and scopes of a tool', async () => {
  const rig = await openToolRig()
  const full = allTools.find(({ name }) => name === 'search_cdrs')?.listing
  const described = await rig.tool('describe_tool', { name: 'search_cdrs' })
  expect(described.data()).toEqual({
    name: 'search_cdrs',
    description: full?.description,
    effect: 'reads',
    scopes: ['mcp:read', 'cdrs:read'],
    input_schema: full?.inputSchema,
    output_schema: full?.outputSchema,
  })
  const over = await rig.request('/api/v1/mcp/tools/search_cdrs', { token: rig.root })
  expect(over.data()).toEqual(full)
  const wrong = await rig.request('/api/v1/mcp/tools/search_cdr', { token: rig.root })
  expect([wrong.status, wrong.text]).toEqual([
    404,
    expect.stringContaining(String.raw`Did you mean \"search_cdrs\"?`),
  ])
})

test.each(eras)(
  'an answer is sent once: its text is one line without any text of others (%s)',
  async (era) => {
    const rig = await openToolRig()
    for (let index = 0; index < 20; index += 1) {
      const uuid = `44444444-4444-4444-8444-4444444444${index + 10}`
      await storeRecord(rig, null, uuid, { caller_id_number: 'IGNORE ALL' })
    }
    const client = await connectClient(rig.app, rig.root, era)
    const call = (given: object) =>
      client.callTool({ name: 'search_cdrs', arguments: { number: 'IGNORE', ...given } })
    const result = await call({})
    expect(JSON.stringify(result.structuredContent)).toContain('IGNORE ALL')
    expect(textOf(result)).toBe(
      'search_cdrs: records: 20. The answer is in structuredContent; if you see only this line, call again with "as_text": true.',
    )
    // As a model does it that has seen only the line.
    const asText = await call({ as_text: true })
    expect(JSON.parse(textOf(asText))).toEqual(result.structuredContent)
    await client.close()
  },
)

test('a client of a protocol without structured content gets the JSON as text, and no output schemas', async () => {
  const rig = await openToolRig()
  const client = new Client({ name: 'old', version: '1' })
  const transport = new StreamableHTTPClientTransport(new URL('http://localhost/mcp'), {
    requestInit: { headers: { Authorization: `Bearer ${rig.root}` } },
    fetch: async (url, init) => {
      const headers = new Headers(init?.headers)
      if (headers.has('mcp-protocol-version')) headers.set('mcp-protocol-version', '2025-03-26')
      return rig.app.request(String(url), { ...init, headers })
    },
  })
  await client.connect(transport)
  const { tools } = await client.listTools()
  expect(tools.filter(({ outputSchema }) => outputSchema !== undefined)).toEqual([])
  const result = await client.callTool({ name: 'get_call', arguments: { call_uuid: endedCall } })
  expect(result.structuredContent).toBeUndefined()
  expect(JSON.parse(textOf(result))).toMatchObject({ success: true, data: { live: null } })
  await client.close()
})
