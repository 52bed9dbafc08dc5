/**
 * A program that `test/control/resources/new-noun.test.ts` runs in a copy of the sources which has
 * the contacts of CONTRIBUTING.md. It prints what it has seen, as JSON.
 */
import { generalScreens } from '../../control/resources/general-screens.ts'
import { seedFile } from '../../engine/commands/seed.ts'
import { openControl } from './control.ts'
import { documentOf } from './documented.ts'

const control = await openControl()
const token = await control.key()
const ask = (method: string, path: string, body?: unknown) =>
  control.request(`/api/v1${path}`, { token, method, body })
const tool = async (name: string, given: object) =>
  (await ask('POST', `/mcp/tools/${name}`, given)).data<Readonly<Record<string, unknown>>>()
const reason = 'They asked for it.'
const names = async () =>
  (await ask('GET', '/contacts')).data<readonly { name: string }[]>().map(({ name }) => name)
const undo = async (changeId: unknown) => {
  const { status } = await ask('POST', `/changes/${String(changeId)}/undo`, { reason })
  return { status, names: await names() }
}

const created = await ask('POST', '/contacts', { name: 'Desk', number: '+49 30 100' })
const { id } = created.data<{ id: number }>()
const updated = await ask('PATCH', `/contacts/${id}`, { note: 'Until 18:00.' })
const undone = await undo(updated.headers.get('x-change-id'))
const routes = [
  created.status,
  updated.status,
  (await ask('GET', `/contacts/${id}`)).data<{ note: unknown }>().note,
  (await ask('GET', '/contacts?search=desk')).status,
  (await ask('DELETE', `/contacts/${id}`)).status,
  (await ask('GET', `/contacts/${id}`)).status,
]

const seed = JSON.stringify({ contacts: [{ name: 'Seeded', number: '4930200' }] })
const seeds = [
  (await seedFile(control.store, seed, control.now())) as object,
  (await seedFile(control.store, seed, control.now())) as object,
].map(
  (report) => Object.entries(report).find(([section]) => section === 'contacts')?.[1] as unknown,
)

const fields = { name: 'Added', number: '4930300' }
const tried = await tool('add_contact', { fields, reason, dry_run: true })
const namesTried = await names()
const added = await tool('add_contact', { fields, reason })
const twice = await ask('POST', '/mcp/tools/add_contact', { fields, reason, dry_run: true })
const rename = { id: added['id'], fields: { name: 'Changed' }, reason }
const changed = await tool('change_contact', rename)
const same = await tool('change_contact', rename)
const listed = await tool('list_contacts', { search: 'chan' })
const changeUndone = await undo(changed['change_id'])
const additionUndone = await undo(added['change_id'])
const seeded = (await ask('GET', '/contacts')).data<readonly { id: number }[]>()
const removed = await tool('remove_contact', { id: seeded[0]?.id, reason })

process.stdout.write(
  JSON.stringify({
    routes,
    undone,
    seeds,
    tools: {
      tried: { effect: tried['effect'], id: tried['id'], names: namesTried },
      added: added['effect'],
      twice: [twice.status, twice.code],
      changed: changed['effect'],
      same: same['changed'],
      listed: listed['rows'],
      changeUndone,
      additionUndone,
      removed: removed['effect'],
      namesAtEnd: await names(),
    },
    screens: generalScreens(),
    isOfClient: JSON.stringify(documentOf(control.app)).includes('"operationId":"listContacts"'),
  }),
)
await control.close()
