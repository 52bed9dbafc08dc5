/** Fetches that are under way: bounded together and for each host, and one for each URL. */
const MAX_OF_ALL = 32
const MAX_OF_HOST = 4

export class FetchesAtOnce<T> {
  readonly #ofUrls = new Map<string, Promise<T>>()
  readonly #ofHosts = new Map<string, number>()
  #total = 0

  get size(): number {
    return this.#ofUrls.size
  }

  /** Joins the fetch of the same URL, or begins one; undefined: there are too many now. */
  join(url: URL, fetch: () => Promise<T>): Promise<T> | undefined {
    const known = this.#ofUrls.get(url.href)
    if (known !== undefined) return known
    const ofHost = this.#ofHosts.get(url.host) ?? 0
    if (this.#ofUrls.size >= MAX_OF_ALL || ofHost >= MAX_OF_HOST) return undefined
    this.#ofHosts.set(url.host, ofHost + 1)
    this.#total += 1
    const begun = fetch().finally(() => {
      this.#ofUrls.delete(url.href)
      const left = (this.#ofHosts.get(url.host) ?? 1) - 1
      if (left > 0) this.#ofHosts.set(url.host, left)
      else this.#ofHosts.delete(url.host)
    })
    this.#ofUrls.set(url.href, begun)
    return begun
  }

  /** Fetches since the start. */
  get total(): number {
    return this.#total
  }
}
