// The state comes by server-sent events, for every open page. The buttons only ask: what they changed comes back as an event.
const find = (id) => document.getElementById(id)
const buttons = [...document.querySelectorAll('button')]

const WORDS = {
  waiting: 'Not started.',
  running: 'Archiving …',
  paused: 'Paused.',
  done: 'All contacts are archived.',
  failed: 'Stopped by an error. Resume tries that contact again.',
  cancelled: 'Cancelled. Reset begins again.',
}
const REQUESTED = { pause: 'Pausing when this contact is done …', cancel: 'Cancelling …' }

let latest

function show(next) {
  latest = next
  const { state, requested, done, total, error, can } = next
  setText('state', REQUESTED[requested] ?? WORDS[state])
  setText('count', `${done} of ${total}`)
  setText('error', error ?? '')
  find('error').hidden = error === undefined
  find('bar').max = Math.max(total, 1)
  find('bar').value = total === 0 ? 1 : done
  for (const button of buttons) button.disabled = !can[button.name]
}

/** A status is read aloud whenever it is written, so only when it changed. */
function setText(id, text) {
  if (find(id).textContent !== text) find(id).textContent = text
}

function showDisconnected() {
  // The bar stays: what was archived is still archived.
  setText('state', 'No connection. Trying again …')
  for (const button of buttons) button.disabled = true
}

for (const button of buttons)
  button.addEventListener('click', async () => {
    button.disabled = true // a second click would be a second command
    try {
      await fetch(button.name, { method: 'POST' })
      show(latest)
    } catch {
      showDisconnected()
    }
  })

const events = new EventSource('events') // It connects again by itself.
events.onmessage = ({ data }) => show(JSON.parse(data))
events.onerror = showDisconnected
