/**
 * Who may propose, and who may decide: a person, or a program that is no agent, with the rights
 * that the change takes.
 */
import type { Principal } from '../../auth/principal.ts'
import { lackOf, refuseBeyondDomain } from '../../auth/requires.ts'
import { allScopes, expandScopes, roleScopes, type Scope } from '../../auth/scopes.ts'
import { ApiError, conflict } from '../../http/api-error.ts'
import { keyStateAt } from '../../auth/app-key.ts'
import type { KeyStore } from '../../auth/key-store.ts'
import { actorOfUser } from '../../auth/sessions.ts'
import type { UserStore } from '../../auth/user-store.ts'

const isOfAgents = (scope: Scope): boolean => scope.startsWith('mcp:')

/** A key with any scope of agents is one; so is a key with `*`. */
const isAgent = ({ kind, scopes }: Principal): boolean =>
  kind === 'key' && [...scopes].some(isOfAgents)

/** Throws 403 for agents, and for the credential that has made the proposal. */
export function refuseAgent(principal: Principal, proposedBy: string): void {
  if (isAgent(principal))
    throw new ApiError(
      403,
      'person_required',
      'Only a person, or a key without any scope of mcp, decides on proposals: sign in, or ' +
        'use another key',
    )
  if (principal.actor === proposedBy)
    throw new ApiError(403, 'own_proposal', 'Another person must decide on your own proposal')
}

/**
 * The scopes that the change itself takes. A person who approves holds them; being an agent is not
 * one of them.
 */
export const scopesToApprove = (scopes: readonly Scope[]): readonly Scope[] =>
  scopes.filter((scope) => !isOfAgents(scope))

export function refuseUnentitled(
  principal: Principal,
  tool: string,
  scopes: readonly Scope[],
): void {
  const lacking = scopesToApprove(scopes).filter((scope) => !principal.scopes.has(scope))
  if (lacking.length > 0)
    throw new ApiError(403, 'insufficient_scope', lackOf(`Approving ${tool}`, lacking, principal))
}

/**
 * The scopes that a proposal takes instead: those that read what the change writes. Each resource
 * has one; what is done to recordings is read as what is done to their calls.
 */
const scopesToPropose = (scopes: readonly Scope[]): readonly Scope[] => [
  ...new Set(scopesToApprove(scopes).map(readingScope)),
]

/** Throws 403 unless the credential may read the resource that the change writes. */
export function refuseBlind(principal: Principal, tool: string, scopes: readonly Scope[]): void {
  const needed = scopesToPropose(scopes)
  const lacking = needed.filter((scope) => !principal.scopes.has(scope))
  if (lacking.length > 0)
    throw new ApiError(403, 'insufficient_scope', lackOf(`Proposing ${tool}`, lacking, principal))
  for (const scope of needed) refuseBeyondDomain(principal, scope)
}

/**
 * The principal of a proposal's dry run: one who may read acts as if it could write. Some tools
 * check scopes themselves, as `undo_change` does with those of the change that it undoes.
 */
export const asIfEntitled = (principal: Principal): Principal => ({
  ...principal,
  scopes: new Set(
    allScopes.filter((scope) => isOfAgents(scope) || principal.scopes.has(readingScope(scope))),
  ),
})

function readingScope(scope: Scope): Scope {
  const [resource = ''] = scope.split(':')
  if (resource === 'recordings') return 'cdrs:read'
  if (scope === 'settings:view') return scope
  return `${resource}:read` as Scope
}

export interface ProposerDeps {
  readonly keys: Pick<KeyStore, 'byUuid'>
  readonly users: Pick<UserStore, 'byUsername'>
  readonly now: () => number
}

/**
 * Throws 409 for a proposal of a key that was revoked, suspended or has expired since, or of a user
 * who was removed: the proposal may be the reason for that.
 */
export async function refuseLostProposer(actor: string, deps: ProposerDeps): Promise<void> {
  const labels = actor.startsWith('key:')
    ? await labelsOfKey(actor.slice('key:'.length), deps)
    : await labelsOfUser(actor, deps)
  const needed: Scope = 'mcp:propose'
  if (expandScopes(labels).has(needed)) return
  throw conflict(
    'proposer_not_valid',
    'The credential of this proposal has become invalid, or may no longer propose: refuse ' +
      'the proposal, or make the change yourself',
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
