/** Finds owners: the tenant of a subject, or the platform where that is not clear. */
import { all } from '../../../schema/sql/query.ts'
import type { Store } from '../../../schema/storage/store.ts'
import type { Finding } from './finding.ts'
import { identityOf, type OwnedFinding } from './finding-life.ts'

/** Names of one statement. */
const SLICE = 200

interface OwnedSubject {
  readonly subject: string
  readonly tenantId: number | null
}

/** The findings of the platform's search with their owners. */
export async function withOwners(
  store: Store,
  findings: readonly Finding[],
): Promise<readonly OwnedFinding[]> {
  const unowned = findings.filter(({ ownerId }) => ownerId === undefined)
  const subjects = [...new Set(unowned.map(({ subject }) => subject))]
  const owners = new Map<string, number | null>()
  for (const { subject, tenantId } of await ownedSubjects(store, subjects))
    // Things of several owners may have one name: then it is left to the platform.
    owners.set(subject, owners.has(subject) && owners.get(subject) !== tenantId ? null : tenantId)
  return findings.map((finding) => ({
    tenantId:
      finding.ownerId !== undefined ? finding.ownerId : (owners.get(finding.subject) ?? null),
    identity: identityOf(finding),
    finding,
  }))
}

async function ownedSubjects(
  store: Store,
  subjects: readonly string[],
): Promise<readonly OwnedSubject[]> {
  return [
    ...(await slices(named(subjects, /^customer (\d+)$/), (ids) => customersOf(store, ids))),
    ...(await slices(named(subjects, /^carrier (".*")$/s), (names) => carriersOf(store, names))),
    ...(await slices(named(subjects, /^key (\S+)$/), (uuids) => keysOf(store, uuids))),
    ...(await slices(named(subjects, /^node (\S+)$/), (uris) => nodesOf(store, uris))),
  ]
}

const named = (subjects: readonly string[], form: RegExp): readonly string[] =>
  subjects.flatMap((subject) => form.exec(subject)?.[1] ?? [])

async function slices(
  names: readonly string[],
  read: (some: readonly string[]) => Promise<readonly OwnedSubject[]>,
): Promise<readonly OwnedSubject[]> {
  const found: OwnedSubject[] = []
  for (let start = 0; start < names.length; start += SLICE)
    found.push(...(await read(names.slice(start, start + SLICE))))
  return found
}

async function customersOf(store: Store, ids: readonly string[]): Promise<OwnedSubject[]> {
  const query = store.db
    .selectFrom('customer')
    .select(['id', 'tenant_id'])
    .where('id', 'in', ids.map(Number))
  return (await all(store, query)).map(({ id, tenant_id }) => ({
    subject: `customer ${id}`,
    tenantId: tenant_id,
  }))
}

async function carriersOf(store: Store, quotedNames: readonly string[]): Promise<OwnedSubject[]> {
  const names = new Map(quotedNames.flatMap((text) => nameIn(text)))
  const query = store.db
    .selectFrom('carrier')
    .select(['name', 'tenant_id'])
    .where('name', 'in', [...names.keys()])
  return (await all(store, query)).map(({ name, tenant_id }) => ({
    subject: `carrier ${names.get(name) ?? ''}`,
    tenantId: tenant_id,
  }))
}

function nameIn(text: string): readonly (readonly [string, string])[] {
  try {
    return [[String(JSON.parse(text)), text]]
  } catch {
    return []
  }
}

async function keysOf(store: Store, uuids: readonly string[]): Promise<OwnedSubject[]> {
  const query = store.db
    .selectFrom('application_key')
    .select(['uuid', 'tenant_id'])
    .where('uuid', 'in', uuids)
  return (await all(store, query)).map(({ uuid, tenant_id }) => ({
    subject: `key ${uuid}`,
    tenantId: tenant_id,
  }))
}

/** `sip:<host>:<port>;transport=<transport>`; a node of the same place may be in several sets. */
async function nodesOf(store: Store, uris: readonly string[]): Promise<OwnedSubject[]> {
  const hosts = new Map(uris.map((uri) => [hostOf(uri), uri]))
  const query = store.db
    .selectFrom('dispatcher_node')
    .innerJoin('dispatcher_set', 'dispatcher_set.id', 'dispatcher_node.dispatcher_set_id')
    .select(['dispatcher_node.host', 'dispatcher_set.tenant_id'])
    .where('dispatcher_node.host', 'in', [...hosts.keys()])
  const rows = await all(store, query)
  return uris.flatMap((uri) =>
    rows
      .filter(({ host }) => host === hostOf(uri))
      .map(({ tenant_id }) => ({ subject: `node ${uri}`, tenantId: tenant_id })),
  )
}

const hostOf = (uri: string): string =>
  /^sips?:\[?([^\];]+?)\]?(?::\d+)?(?:;|$)/.exec(uri)?.[1] ?? uri
