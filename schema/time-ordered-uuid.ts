/**
 * A UUID of version 7 (RFC 9562 §5.7): it begins with the time, so that the indexes of calls grow
 * at their end. With random ones each record changed a page of its own in two indexes.
 *
 * @param random a UUID of version 4, from which the rest is taken.
 * @param now milliseconds UTC.
 */
export function timeOrderedUuid(random: string, now: number): string {
  const time = now.toString(16).padStart(12, '0')
  return `${time.slice(0, 8)}-${time.slice(8)}-7${random.slice(15)}`
}
