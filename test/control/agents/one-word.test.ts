/** The schemas of all tools as a stranger reads them: one word for one thing. */
import { expect, test } from 'vitest'
import { allTools } from '../../../control/agents/catalog/index.ts'

/** Names and keys of SPECIFICATION.md §4.4 stay as they are. */
const specified: ReadonlySet<string> = new Set([
  'list_sbc_api_keys',
  'revoke_sbc_api_key',
  'list_api_keys',
  'get_api_key_status',
  'get_dispatcher_status',
  'list_sbc_endpoints',
  'set_dispatcher_state',
  'reload_dispatchers',
])
/** Of records, as the specification of call records writes them. */
const ofRecords = ['disposition']
/** Older names, which are still taken. */
const older = ['search_cdrs.start_date', 'search_cdrs.end_date']

interface Field {
  /** `tool.name` of the outermost one. */
  readonly place: string
  readonly name: string
  readonly schema: Schema
}

interface Schema {
  readonly type?: unknown
  readonly enum?: readonly unknown[]
  readonly properties?: Readonly<Record<string, Schema>>
  readonly items?: Schema
  readonly anyOf?: readonly Schema[]
}

const fieldsOf = (place: string, schema: Schema): readonly Field[] => [
  ...Object.entries(schema.properties ?? {}).flatMap(([name, inner]) => [
    { place: `${place}.${name}`, name, schema: inner },
    ...fieldsOf(`${place}.${name}`, inner),
  ]),
  ...(schema.items === undefined ? [] : fieldsOf(place, schema.items)),
  ...(schema.anyOf ?? []).flatMap((each) => fieldsOf(place, each)),
]

const ours = allTools.filter(({ name }) => !specified.has(name))
const inputs = ours.flatMap(({ name, listing }) => fieldsOf(name, listing.inputSchema))
const outputs = ours.flatMap(({ name, listing }) => fieldsOf(name, listing.outputSchema))

test('fields are in lower case with underscores, and so are their words', () => {
  const strange = [...inputs, ...outputs].filter(
    ({ name, schema }) =>
      !/^[a-z][a-z\d_]*$/.test(name) ||
      (!ofRecords.includes(name) &&
        (schema.enum ?? []).some((word) => /[A-Z ]/.test(String(word)))),
  )
  expect(strange.map(({ place }) => place)).toEqual([])
})

test('what is the state of something is called state, and a period is start and end', () => {
  const others = /^(?:status|flags|mode|start_date|end_date|from_date|to_date|since|until)$/
  const used = inputs.filter(({ name }) => others.test(name)).map(({ place }) => place)
  expect(used).toEqual(older)
  const states = outputs.filter(
    ({ name, schema }) => name === 'status' && schema.enum !== undefined,
  )
  // What has become of one request, not the state of a call.
  expect(states.map(({ place }) => place)).toEqual(['hangup_call.data.status'])
})

test('an argument of one name has one type in all tools', () => {
  const types = new Map<string, Set<string>>()
  for (const { place, name, schema } of inputs) {
    if (place.split('.').length > 2 || place.startsWith('propose_change')) continue
    const type = JSON.stringify(schema.type ?? schema.anyOf?.map((each) => each.type))
    types.set(name, (types.get(name) ?? new Set()).add(type))
  }
  const several = [...types].filter(([, found]) => found.size > 1).map(([name]) => name)
  // A node and a carrier are named exactly where one is meant, and in the words of records where calls are filtered.
  expect(several.toSorted()).toEqual(['carrier', 'node'])
})

test('a tool beside which another one is better says so', () => {
  const preferred: Readonly<Record<string, string>> = {
    list_sbc_endpoints: 'get_dispatcher_status',
    revoke_sbc_api_key: 'suspend_api_key',
    get_api_key_status: 'list_api_keys',
    get_call: 'explain_call',
    lookup_rate: 'simulate_call',
  }
  for (const [name, better] of Object.entries(preferred)) {
    const { description } = allTools.find((tool) => tool.name === name)?.listing ?? {}
    expect([name, description]).toEqual([name, expect.stringContaining(`Prefer ${better}`)])
  }
})
