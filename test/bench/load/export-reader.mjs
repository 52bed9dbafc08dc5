/**
 * Reads one address again and again until its standard input ends, and then writes what it has read.
 * It runs as the nicest process, because a reader would be on another machine.
 */
const [url, token, type] = process.argv.slice(2)
const { stdin } = process
stdin.resume()

let [answers, lines, bytes] = [0, 0, 0]
const begin = performance.now()
while (!stdin.readableEnded) {
  const headers = { authorization: `Bearer ${token}`, accept: type }
  const answer = await fetch(url, { headers })
  if (!answer.ok) throw new Error(`${url}: ${answer.status} ${await answer.text()}`)
  for await (const chunk of answer.body) {
    bytes += chunk.length
    for (let at = chunk.indexOf(10); at >= 0; at = chunk.indexOf(10, at + 1)) lines += 1
    if (stdin.readableEnded) break
  }
  answers += 1
}
const seconds = (performance.now() - begin) / 1_000
console.log(JSON.stringify({ answers, lines, bytes, seconds }))
