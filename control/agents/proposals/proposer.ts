/** Whether the credential that has made a proposal is still one that may. */
import { keyStateAt } from '../../auth/app-key.ts'
import type { KeyStore } from '../../auth/key-store.ts'
import { expandScopes, roleScopes, type Scope } from '../../auth/scopes.ts'
import { actorOfUser } from '../../auth/sessions.ts'
import type { UserStore } from '../../auth/user-store.ts'
import { conflict } from '../../http/api-error.ts'

export interface ProposerDeps {
  readonly keys: Pick<KeyStore, 'byUuid'>
  readonly users: Pick<UserStore, 'byUsername'>
  readonly now: () => number
}

/**
 * Throws 409 for a proposal of a key that was revoked, suspended or has expired since, or of a user who was removed:
 * it may be what the key was taken away for.
 */
export async function refuseLostProposer(actor: string, deps: ProposerDeps): Promise<void> {
  const labels = actor.startsWith('key:')
    ? await labelsOfKey(actor.slice('key:'.length), deps)
    : await labelsOfUser(actor, deps)
  const needed: Scope = 'mcp:propose'
  if (expandScopes(labels).has(needed)) return
  throw conflict(
    'proposer_not_valid',
    'The credential that made this proposal is not valid any more, or may not propose: refuse it, or make the change yourself',
  )
}

async function labelsOfKey(uuid: string, { keys, now }: ProposerDeps): Promise<readonly string[]> {
  const key = await keys.byUuid(uuid, null)
  return key !== undefined && keyStateAt(key, now()) === 'active' ? key.scopeLabels : []
}

async function labelsOfUser(actor: string, { users }: ProposerDeps): Promise<readonly string[]> {
  const name = actor.slice('user:'.length).split('/').at(-1) ?? ''
  const user = (await users.byUsername(name)).find((each) => actorOfUser(each) === actor)
  return user !== undefined && user.is_active === 1 ? roleScopes[user.role] : []
}
