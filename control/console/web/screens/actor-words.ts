/**
 * Who has done something: a name alone would not tell a user from a key.
 *
 * `user:admin` → `user admin`, `key:…` named night-shift → `key night-shift`
 */
export function actorText(actor: string, name: string | null = null): string {
  const [kind, ...rest] = actor.split(':')
  const id = rest.join(':')
  switch (kind) {
    case 'user':
      return `user ${name ?? id}`
    case 'key':
      return `key ${name ?? id.slice(0, 8)}`
    case 'customer':
      return `customer ${name ?? id}`
    case 'payment':
      return 'a payment'
    case 'anonymous':
      return 'somebody without a credential'
    case 'platform':
      return 'the platform'
    case 'console':
      return 'the command line'
    default:
      return name ?? actor
  }
}
