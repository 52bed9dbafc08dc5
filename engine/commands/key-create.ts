import { newKeyBody } from '../../control/auth/app-key.ts'
import { consoleGrantor, issueKey } from '../../control/auth/issue-key.ts'
import { KeyStore } from '../../control/auth/key-store.ts'
import { UserStore } from '../../control/auth/user-store.ts'
import type { Store } from '../../schema/storage/store.ts'
import { ApiError } from '../../control/http/api-error.ts'
import { allScopes, roleScopes } from '../../control/auth/scopes.ts'
import { type Command, type CommandInput, WrongUsage } from './command.ts'
import { withAudit } from './audited.ts'

export const keyCreate: Command = {
  name: 'key create',
  summary: 'Creates an application key and prints its token. The token is never shown again.',
  options: {
    name: { value: 'NAME', meaning: 'a name that is unique in its tenant', isRequired: true },
    kind: { value: 'sbc|pbx|billing', meaning: 'the kind of the key; default sbc' },
    scopes: { value: 'A,B', meaning: 'its scopes, such as dispatcher:read,cdrs:*; default *:read' },
    tenant: { value: 'SLUG', meaning: 'the tenant of the key; default: global' },
    'expires-at': { value: 'TIME', meaning: 'the end of its validity (RFC 3339); default: never' },
    owner: { value: 'USER', meaning: 'the user who owns the key; default: console' },
  },
  details: scopesHelp,
  run: async (input, context) => {
    const body = readBody(input)
    const audited = { action: 'key create', target: body.name }
    const token = await withAudit(context, audited, (store) => {
      const keys = new KeyStore(store)
      const { now, randomBytes } = context
      const mint = { store, keys, now, randomBytes }
      return inOptions(async () => {
        const username = await ownerOf(input, store)
        return (await issueKey(mint, body, { ...consoleGrantor, username })).token
      })
    })
    context.print(token)
    return 0
  },
}

/** A key of a misspelled owner would be found by nobody. */
async function ownerOf({ options: { owner } }: CommandInput, store: Store): Promise<string> {
  if (owner === undefined) return consoleGrantor.username
  if ((await new UserStore(store).byUsername(owner)).length > 0) return owner
  throw new Error(named('owner', `there is no user ${JSON.stringify(owner)}`))
}

/** Every scope, by resource. */
function scopesHelp(): string {
  const actions = new Map<string, string[]>()
  for (const scope of allScopes) {
    const [resource = '', action = ''] = scope.split(':')
    actions.set(resource, [...(actions.get(resource) ?? []), action])
  }
  const rows = [...actions].map(
    ([resource, known]) => `  ${known.map((action) => `${resource}:${action}`).join('  ')}`,
  )
  return [
    'Scopes (calls:* is every action of a resource, *:read is all reading, * is everything):',
    ...rows,
    '',
    `An operator has ${roleScopes.operator.join(', ')}; a node that charges over /api/ocs ` +
      'needs ocs.',
  ].join('\n')
}

/** Field of the REST body → the option that fills it. */
const optionOf: Readonly<Record<string, string>> = {
  tenant_slug: 'tenant',
  expires_at: 'expires-at',
}

function readBody({ options }: CommandInput) {
  const { name, kind, scopes, tenant, 'expires-at': expiresAt } = options
  const result = newKeyBody.safeParse({
    name,
    kind,
    scopes: scopes?.split(',').map((scope) => scope.trim()),
    expires_at: expiresAt,
    ...(tenant === undefined ? {} : { tenant_scope: 'tenant', tenant_slug: tenant }),
  })
  if (result.success) return result.data
  const [issue] = result.error.issues
  throw new WrongUsage(named(String(issue?.path[0]), issue?.message ?? 'is not allowed'))
}

/** Reports the error of a field under the name of its option. */
async function inOptions<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    const [detail] = error instanceof ApiError ? (error.details ?? []) : []
    throw detail === undefined ? error : new Error(named(detail.path, detail.message))
  }
}

const named = (field: string, problem: string): string =>
  `--${optionOf[field] ?? field}: ${problem}`
