/**
 * Decides which number a call shows, and who vouches for it (SPECIFICATION.md §10.7). Pure. Every
 * call to the outside is decided here: of a phone, a node or a trunk, forwarded, transferred, begun
 * by the API, or changed by a hook.
 */
import type {
  Attestation,
  CallerIdentityPolicy,
  PresentedIdentity,
} from '../../../schema/contracts/caller-identity.ts'
import type { NumberOwner, OwnedNumbers } from '../../../schema/contracts/owned-numbers.ts'
import { withoutPlus, withoutSeparators } from '../../../schema/rules/numbers.ts'

/** The rules of one source, as they are stored. */
export interface CallerIdentityRules extends CallerIdentityPolicy {
  /** It is presented on emergency calls. */
  readonly emergencyNumber?: string | undefined
  /** The row belongs to the platform, and no tenant has written it. */
  readonly isPlatforms?: true | undefined
}

/** The caller as the source has sent it. Numbers are in normal form; empty: there is none. */
export interface CallerClaim {
  readonly number: string
  readonly name: string
  /** The caller asks not to be shown (RFC 3323, RFC 3325 §7). */
  readonly isPrivate: boolean
  /** The number is the source's usual one: nobody has asked for another. */
  readonly isUsual: boolean
}

/** The first caller of a call that was forwarded or transferred. */
export interface FirstCaller extends Omit<CallerClaim, 'isUsual'> {
  /** A network of others has vouched for it, and no customer of ours has written it. */
  readonly isVouched: boolean
}

export interface IdentityQuestion {
  readonly claim: CallerClaim
  /** Set: the call was forwarded or transferred. */
  readonly firstCaller?: FirstCaller | undefined
  /** The number that a node says it forwards by (RFC 5806, RFC 7044). */
  readonly diverting?: string | undefined
  /** In the order in which they count: extension, customer, set, carrier. */
  readonly rules: readonly CallerIdentityRules[]
  readonly owner: NumberOwner
  /** The digits of the extension that calls. */
  readonly extension?: string | undefined
  readonly callerNumber?: string | undefined
  readonly defaultNumber?: string | undefined
  readonly isEmergency: boolean
  /** The call is the platform's own: no tenant and no customer is known behind it. */
  readonly isPlatforms: boolean
}

/** The numbers that a payer may present without a list. */
export interface PresentableOwn extends Pick<OwnedNumbers, 'find'> {
  owns(number: string, owner: NumberOwner): boolean
}

export type IdentityDecision =
  | { readonly kind: 'presented'; readonly identity: PresentedIdentity }
  | { readonly kind: 'refused'; readonly why: string }

export function decideCallerIdentity(
  question: IdentityQuestion,
  numbers: PresentableOwn,
): IdentityDecision {
  const asker = new Asker(question, numbers)
  if (question.isEmergency) return presented(asker.emergency())
  return asker.forwarded() ?? asker.plain()
}

const presented = (identity: PresentedIdentity): IdentityDecision => ({
  kind: 'presented',
  identity,
})

/** RFC 8588 §4: a gateway's attestation. */
const fromNetwork = { attestation: 'C' } as const

/** A number that may be presented, and why it is. */
interface Choice {
  readonly number: string
  readonly why: string
}

/** The rules of all sources for one call. */
class Asker {
  readonly #question: IdentityQuestion
  readonly #numbers: PresentableOwn
  readonly #policy: CallerIdentityRules

  constructor(question: IdentityQuestion, numbers: PresentableOwn) {
    this.#question = question
    this.#numbers = numbers
    this.#policy = merged(question.rules)
  }

  /** Nobody is left without help because of a number: what was sent is the last resort. */
  emergency(): PresentedIdentity {
    const { claim, extension = '' } = this.#question
    const { emergencyNumber = '', isPlatforms } = this.#policy
    const shown = { ...claim, isPrivate: false }
    if (emergencyNumber !== '' && (isPlatforms === true || this.#mayPresent(emergencyNumber)))
      return this.#identity({ number: emergencyNumber, why: 'the emergency number' }, shown)
    const own = this.#standard()
    const sent = { number: claim.number || extension, why: 'the number that was sent' }
    const isAsked = !claim.isUsual && this.#mayPresent(claim.number)
    return this.#identity(isAsked ? sent : (own ?? sent), shown)
  }

  /** Undefined: the call goes on as one of who forwards it. */
  forwarded(): IdentityDecision | undefined {
    const { firstCaller, claim } = this.#question
    if (firstCaller === undefined || !claim.isUsual) return undefined
    if (this.#policy.forwarded !== 'original') return undefined
    const by = this.#own()
    const isShown = firstCaller.isVouched || this.#mayPresent(firstCaller.number)
    if (by === undefined || !isShown) return undefined
    const first = { number: firstCaller.number, why: `the first caller, forwarded by ${by.number}` }
    const identity = this.#identity(first, firstCaller)
    // Anybody may call by a network with a number of ours: that it is ours proves nothing.
    const { attestation } = firstCaller.isVouched ? fromNetwork : identity
    return presented({ ...identity, attestation, divertedBy: by.number })
  }

  plain(): IdentityDecision {
    const { claim } = this.#question
    const { present = 'own' } = this.#policy
    const asked = this.#asked()
    if (asked !== undefined && this.#mayPresent(asked))
      return presented(this.#identity({ number: asked, why: 'the number that was sent' }, claim))
    const standard = this.#standard()
    if (asked === undefined && standard !== undefined)
      return presented(this.#identity(standard, claim))
    const wrong =
      asked === undefined ? `no number may be presented as "${present}"` : notAllowed(asked)
    return this.#otherwise(wrong, standard)
  }

  #otherwise(wrong: string, standard: Choice | undefined): IdentityDecision {
    const { claim } = this.#question
    const { otherwise = 'replace' } = this.#policy
    if (otherwise === 'refuse') return { kind: 'refused', why: wrong }
    const own = standard ?? this.#own()
    if (otherwise === 'replace' && own !== undefined)
      return presented(this.#identity({ ...own, why: `${own.why}: ${wrong}` }, claim))
    const asserted = own ?? { number: '', why: '' }
    const hidden = this.#identity({ ...asserted, why: `anonymous: ${wrong}` }, claim)
    return presented({ ...hidden, number: '', name: '', isPrivate: true })
  }

  /**
   * The number that the source asks for. Digits that are dialled inside only are one where the
   * rules present what was sent.
   */
  #asked(): string | undefined {
    const { claim } = this.#question
    if (claim.isUsual || claim.number === '') return undefined
    const isWanted = this.#policy.present === 'as_sent'
    return isWanted || isOutside(claim.number) ? claim.number : undefined
  }

  /** The number that is presented where none is asked for. */
  #standard(): Choice | undefined {
    switch (this.#policy.present) {
      case 'extension':
        return this.#inner() ?? this.#own()
      case 'default':
        return this.#default()
      case 'as_sent':
        return this.#own() ?? this.#sent()
      case 'own':
      case undefined:
      default:
        return this.#own()
    }
  }

  #own(): Choice | undefined {
    const { callerNumber = '', diverting = '' } = this.#question
    if (this.#mayPresent(diverting))
      return { number: diverting, why: 'the number that has forwarded the call' }
    if (this.#mayPresent(callerNumber))
      return { number: callerNumber, why: 'the caller number of the extension' }
    const standard = this.#default()
    // Whoever has set the caller number reads why it is not the one that is shown.
    return callerNumber === '' || standard === undefined
      ? standard
      : { ...standard, why: `${standard.why}: ${notAllowed(callerNumber)}` }
  }

  #sent(): Choice | undefined {
    const { number } = this.#question.claim
    return this.#mayPresent(number) ? { number, why: 'the number that was sent' } : undefined
  }

  #default(): Choice | undefined {
    const { defaultNumber = '' } = this.#question
    return this.#mayPresent(defaultNumber)
      ? { number: defaultNumber, why: 'the default number of the customer' }
      : undefined
  }

  /** A number of the outside may be an extension, too: then it has to be owned. */
  #inner(): Choice | undefined {
    const { extension, claim } = this.#question
    const number = extension ?? claim.number
    const isShown = number !== '' && (isInner(number) || this.#mayPresent(number))
    return isShown ? { number, why: 'the digits of the extension' } : undefined
  }

  #mayPresent(number: string): boolean {
    const { owner, isPlatforms } = this.#question
    const { allowed = isPlatforms ? 'any' : 'owned', numbers = [] } = this.#policy
    if (number === '') return false
    if (allowed === 'any' || this.#numbers.owns(number, owner)) return true
    const digits = withoutPlus(number)
    return allowed === 'list' && numbers.some((start) => digits.startsWith(withoutPlus(start)))
  }

  #identity(
    { number, why }: Choice,
    { name: sent, isPrivate }: Pick<CallerClaim, 'name' | 'isPrivate'>,
  ): PresentedIdentity {
    const attestation = this.#attestationOf(number)
    const name = this.#nameBeside(number, this.#numbers.find(number)?.displayName || sent)
    return isPrivate
      ? { number: '', name: '', isPrivate, asserted: number, why: `${why}, hidden`, attestation }
      : { number, name, isPrivate, asserted: number, why, attestation }
  }

  /** Phones show a name in place of its number: one that holds another number is left out. */
  #nameBeside(number: string, name: string): string {
    if (!/\p{Nd}/u.test(name)) return name
    const plain = withoutSeparators(name.normalize('NFKC'))
    const mayName = (other: string): boolean =>
      withoutPlus(other) === withoutPlus(number) || this.#mayPresent(other)
    return (plain.match(/\+?\p{Nd}{7,}/gu) ?? []).every(mayName) ? name : ''
  }

  #attestationOf(number: string): Attestation {
    const { owner } = this.#question
    if (number !== '' && this.#numbers.owns(number, owner))
      return this.#numbers.find(number)?.attestation ?? 'A'
    const isKnown = owner.customerId !== null || owner.tenantId !== null
    return isKnown && number !== this.#question.firstCaller?.number ? 'B' : 'C'
  }
}

/** A name is what a caller has written: no sentence repeats it. */
const notAllowed = (number: string): string =>
  `${isNumber(number) ? number : 'the name that was sent'} may not be presented`

const isNumber = (text: string): boolean => /^\+?[0-9*#]+$/.test(text)

/** A longer number, or one with `+`, is never one that is dialled inside only. */
const isInner = (number: string): boolean => /^[0-9*#]{1,6}$/.test(number)
const isOutside = (number: string): boolean => isNumber(number) && !isInner(number)

/** The first source that says a field decides it. */
function merged(rules: readonly CallerIdentityRules[]): CallerIdentityRules {
  const found: { -readonly [Field in keyof CallerIdentityRules]: CallerIdentityRules[Field] } = {}
  for (const each of rules) {
    found.present ??= each.present
    found.allowed ??= each.allowed
    found.numbers ??= each.numbers
    found.otherwise ??= each.otherwise
    found.forwarded ??= each.forwarded
    if (found.emergencyNumber === undefined && each.emergencyNumber !== undefined) {
      found.emergencyNumber = each.emergencyNumber
      found.isPlatforms = each.isPlatforms
    }
  }
  return found
}
