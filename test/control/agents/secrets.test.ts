import fc from 'fast-check'
import { expect, test } from 'vitest'
import { allTools } from '../../../control/agents/catalog/index.ts'
import { deniedCall, endedCall, liveCall, openToolRig, type ToolRig } from '../../support/tools-rig.ts'
import { readColumn } from '../../support/stored.ts'

/** Secrets of every kind, stored as the API stores them; answers whatever must never be seen. */
async function plantSecrets(rig: ToolRig): Promise<readonly string[]> {
  const secrets = ['horse battery', 'phone password', 'trunk password', 'correct horse']
  const make = (path: string, body: object) =>
    rig.request(`/api/v1${path}`, { token: rig.root, body })
  await make('/pbx/extensions', { extension: '100', password: 'phone password', tenant: 'acme' })
  await make('/routing/carriers', {
    name: 'trunk',
    gateways: [{ host: '10.0.0.9' }],
    auth: { type: 'register', username: 'us', password: 'trunk password', realm: 'trunk' },
  })
  await rig.user('ada', 'admin')
  const login = await rig.request('/api/v1/auth/login', {
    body: { username: 'ada', password: 'correct horse' },
  })
  const session = login.data<{ token: string }>().token
  const tokens: string[] = []
  for (const kind of ['sbc', 'pbx', 'billing'])
    tokens.push(await rig.key({ name: `a ${kind} key`, kind }))
  // A careless operator put a token into a name.
  await rig.key({ name: 'careless', description: `the token is ${tokens[0] ?? ''}` })
  const keyHashes = await readColumn<Buffer>(rig.store, 'SELECT key_hash FROM application_key')
  const passwords = await readColumn<string>(rig.store, 'SELECT password_hash FROM "user"')
  return [
    ...secrets,
    ...[rig.root, ...tokens].map((token) => token.slice(12)),
    ...session.split('.').slice(1),
    ...keyHashes.map((hash) => hash.toString('hex')),
    ...passwords,
  ]
}

const names = allTools.map(({ name }) => name)

test(
  'no secret is in any answer of any tool, whatever it is asked',
  { timeout: 60_000 },
  async () => {
    const rig = await openToolRig()
    const secrets = await plantSecrets(rig)
    const given = fc.record(
      {
        search: fc.constantFrom('', 'a', 'key', 'careless', '%'),
        identifier: fc.constantFrom('unknown', rig.root, 'a pbx key'),
        name: fc.constantFrom('a pbx key', 'a billing key', rig.root),
        key_id: fc.integer({ min: 1, max: 8 }),
        setId: fc.integer({ min: 0, max: 3 }),
        state: fc.constantFrom('active', 'probing'),
        destination: fc.constantFrom('sip:10.0.0.1:5060;transport=udp', rig.root),
        call_uuid: fc.constantFrom(liveCall, endedCall, deniedCall, rig.root),
        customer: fc.constantFrom<string | number>(1, 'acme customer', rig.root),
        number: fc.constantFrom('4930', rig.root),
        dry_run: fc.boolean(),
      },
      { requiredKeys: [] },
    )
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...names), given, async (name, all) => {
        const properties = Object.keys(
          allTools.find((tool) => tool.name === name)?.listing.inputSchema['properties'] ?? {},
        )
        // What the tool takes, and now and then everything, so that refusals are seen too.
        const fitting = Object.fromEntries(
          Object.entries(all).filter(([key]) => properties.includes(key) || all.dry_run === true),
        )
        rig.tick(1_000)
        const answer = await rig.tool(name, fitting)
        for (const secret of secrets)
          expect([name, answer.text.includes(secret)]).toEqual([name, false])
      }),
      { numRuns: 250 },
    )
    const audit = await rig.request('/api/v1/audit?limit=200', { token: rig.root })
    for (const secret of secrets.filter((each) => each.length > 40))
      expect(audit.text.includes(secret)).toBe(false)
  },
)
