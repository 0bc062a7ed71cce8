"""Bodies that do not end at the edge by itself: which of them end early, and how its client hears of it.
ctest: timeout=300
"""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import harness  # noqa: E402

from edge_client import (  # noqa: E402
    DATA, END_HEADERS, END_STREAM, HEADERS, PING, PREFACE, RST, Client, EdgeCase, block, curl_upload, frame, h1, h1_answers,
    h2_answers, h2_frames, h2_request, main, settings, window)

MEG = 1 << 20
ROOM = 4 * MEG  # of which the last sixteenth is for little ones


def begin(stream, size, path="/echo"):
    """A body over HTTP/2 without its end."""
    return frame(HEADERS, END_HEADERS, stream, block(path)) + b"".join(
        frame(DATA, 0, stream, bytes(min(16384, size - at))) for at in range(0, size, 16384))


class Room(EdgeCase):
    def edge_with_room(self, patience_ms):
        """A body that has not grown for a fortieth of the patience may have to go."""
        return self.edge("-b", MEG, "-U", ROOM, "-t", patience_ms)

    def fill(self, client, streams, first=PREFACE + settings((4, 1 << 24)) + window(0, 1 << 24)):
        """900 kB each."""
        client.send(first + b"".join(begin(stream, 900000) for stream in streams) + frame(PING, 0, 0, b"12345678"))
        client.read_until(lambda data: [f for f in h2_frames(data) if f[0] == PING], "the PING's answer")

    def refused(self, client):
        """The stream that was answered first, with a 503, which no reset follows yet."""
        client.read_until(lambda data: [f for f in h2_frames(data) if f[0] == DATA and f[1] & END_STREAM], "an answer")
        answers = [f for f in h2_frames(client.input) if f[2] != 0 and f[0] in (HEADERS, DATA, RST)]
        self.assertEqual([kind for kind, *_ in answers], [HEADERS, DATA])
        self.assertEqual(answers[0][2], answers[1][2])
        self.assertIn(b'"overloaded"', answers[1][3])
        self.assertIn(b"503", answers[0][3])
        return answers[0][2]

    def test_who_does_not_grow_makes_room_and_keeps_the_connection(self):
        edge = self.edge_with_room(3000)
        with Client(edge) as hoarder:
            self.fill(hoarder, (1, 3, 5, 7))
            harness.wait_for(lambda: self.makes_room(edge), "room")
            refused = self.refused(hoarder)
            hoarder.send(frame(DATA, 0, refused, bytes(9000)) + h2_request(101, "/now/7"))
            self.assertEqual(hoarder.read_until(h2_answers(101), "another's answer"), [b"x" * 7])
            kept = next(stream for stream in (1, 3, 5, 7) if stream != refused)
            hoarder.send(frame(DATA, END_STREAM, kept, b"!"))
            (body,) = hoarder.read_until(h2_answers(kept), "the answer of one that had room")
            self.assertTrue(body.endswith(b"!"))
        self.assert_at_rest(edge)

    def makes_room(self, edge):
        """Whether a body of 900 kB is answered with itself."""
        with Client(edge) as client:
            body = os.urandom(900000)
            client.send(h1("/echo", body)[:-1])
            client.wait_read()
            edge.stats()  # the turn that has read it is over
            client.send(body[-1:])
            client.read_until(lambda data: h1_answers(1)(data), "an answer")
            return client.input.endswith(body)

    def test_where_all_grow_the_newcomer_is_told_to_come_again(self):
        edge = self.edge_with_room(400000)  # they count as growing for 10 s
        with Client(edge) as hoarder, Client(edge) as newcomer:
            self.fill(hoarder, (1, 3, 5, 7))
            newcomer.send(PREFACE + settings((4, 1 << 24)) + begin(1, 900000))  # in the first flight
            self.assertEqual(self.refused(newcomer), 1)
            newcomer.send(h2_request(3, "/now/5") + frame(DATA, 0, 1, bytes(9000)) + h2_request(5, "/echo"))
            self.assertEqual(newcomer.read_until(h2_answers(3, 5), "others' answers"), [b"xxxxx", b"{}"])
            with Client(edge) as old:
                old.send(h1("/echo", bytes(900000))[:-1])
                answer = old.read_to_end()
            self.assertTrue(answer.startswith(b"HTTP/1.1 503 "), answer)
            self.assertIn(b"\r\nRetry-After: 1\r\n", answer)
            self.assertIn(b'"overloaded"', answer)
            with Client(edge) as little:  # the last part is for those
                little.send(h1("/echo", bytes(60000))[:-1])
                little.send(b"!")
                self.assertTrue(little.read_until(h1_answers(1), "an answer")[0].endswith(b"!"))
        self.assertEqual(self.assert_at_rest(edge)["unfinished_bytes"], 2)

    def test_curl_shows_the_answer_though_it_is_still_sending(self):
        """7.88, Debian 12's, would not if a reset followed the answer."""
        edge = self.edge_with_room(4000000)
        with Client(edge) as hoarder:
            self.fill(hoarder, (1, 3, 5, 7))
            for _ in range(3):
                code, said, wrong = curl_upload(edge, "/echo", "x" * 900000)
                self.assertEqual((code, said[-3:], wrong), (0, "503", ""))
                self.assertIn('"overloaded"', said)
        self.assert_at_rest(edge)

    def test_a_hoarder_over_http1_is_answered_and_closed(self):
        edge = self.edge_with_room(3000)
        with Client(edge) as hoarder, Client(edge) as other:
            hoarder.send(h1("/echo", bytes(MEG))[:-1])
            self.fill(other, (1, 3, 5))
            harness.wait_for(lambda: self.makes_room(edge), "room")
            answer = hoarder.read_to_end()
            self.assertTrue(answer.startswith(b"HTTP/1.1 503 "), answer)
        self.assertGreaterEqual(self.assert_at_rest(edge)["unfinished_bytes"], 1)

    def test_a_hoarder_who_does_not_read_loses_its_bodies_as_well(self):
        """Its answer cannot leave, so that nothing is read of it and no frame is given to h2o."""
        edge = self.edge_with_room(20000)
        with Client(edge, receive_buffer=4096) as hoarder:
            self.fill(hoarder, (1, 3, 5, 7))
            hoarder.send(window(0, 1 << 30) + h2_request(101, "/now/4194304") + window(101, 1 << 30) + begin(103, 9000))
            harness.wait_for(lambda: self.makes_room(edge), "room")
            hoarder.read_until(self.answered_503, "a stream's end")
        self.assert_at_rest(edge)

    @staticmethod
    def answered_503(data):
        return [f for f in h2_frames(data) if f[0] == HEADERS and b"503" in f[3]]

    def test_a_connection_that_has_too_much_loses_a_stream_and_at_last_itself(self):
        edge = self.edge("-b", MEG)
        with Client(edge) as client:
            self.fill(client, (1, 3, 5, 7))
            client.send(begin(9, 900000))
            self.refused(client)
            client.send(h2_request(101, "/now/7"))
            self.assertEqual(client.read_until(h2_answers(101), "another's answer"), [b"x" * 7])
            try:
                client.send(b"".join(begin(stream, 900000) for stream in range(103, 203, 2)))
                client.read_to_end()
            except (BrokenPipeError, ConnectionResetError):
                pass
        self.assertGreater(self.assert_at_rest(edge)["unfinished_bytes"], 1)


if __name__ == "__main__":
    main()
